/* A call as the table `call` takes it. */
#ifndef CT_ROW_H
#define CT_ROW_H

#include <stdbool.h>
#include <stdint.h>

struct ct_row {
    uint64_t end_ns;
    uint64_t duration_ns;
    int64_t site_id;
    uint64_t bytes;
    bool has_bytes;
};

#endif
