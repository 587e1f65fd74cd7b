/* A sentence for the user about what cannot be done, with a path in it. */
#ifndef CT_MESSAGE_H
#define CT_MESSAGE_H

enum { CT_MESSAGE_BYTES = 4096 + 512 };

#endif
