/* What visited.c and its allocator agree on. */
#ifndef VISITED_H
#define VISITED_H

/* A block of this size makes the library visited_allocator.c call the driver. */
enum { VISITED_BYTES = 7777 };

#endif
