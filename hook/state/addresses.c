/* Divides the address space into aligned blocks of three sizes, and counts the ranges that overlap each
 * block. The driver reserves device addresses in pieces of 2 MiB or more, so a 2 MiB block never contains
 * both host and device memory. At most about 1500 blocks cover a range of up to 512 GiB. */
#include "addresses.h"

#include "compiler.h"
#include "current.h"
#include "table.h"

static const unsigned shifts[] = { 39, 30, 21 }; /* 512 GiB, 1 GiB, 2 MiB */
enum { SMALLEST = 21 };
#define ADDRESSES_END (UINT64_C(1) << 57)

static struct ct_table ranges;     /* maps a range's address to its length, in blocks of the smallest size */
static struct ct_table held;       /* maps a block to the number of ranges that overlap it */
static struct ct_table learned[2]; /* map a range's address to the low and high half of ct_now() when the
                                    * range was learned */

static uint64_t key_of(uint64_t address, unsigned level)
{
    return UINT64_C(1) << 63 | address >> shifts[level] << 2 | level;
}

/* Adds `by` to the counts of the blocks that cover a range, using the largest blocks that fit. Requires the
 * table lock. */
static void change(uint64_t address, uint64_t blocks, int32_t by)
{
    uint64_t at = address >> SMALLEST << SMALLEST;
    const uint64_t end = at + (blocks << SMALLEST);
    while (at < end) {
        unsigned level = 0;
        while (shifts[level] > SMALLEST &&
               (at & ((UINT64_C(1) << shifts[level]) - 1) || end - at < UINT64_C(1) << shifts[level]))
            level++;
        const uint64_t key = key_of(at, level);
        const uint32_t count = ct_table_get(&held, key);
        if (by > 0 || count > 0)
            ct_table_set(&held, key, count + (uint32_t)by);
        at += UINT64_C(1) << shifts[level];
    }
}

static void forget(uint64_t address)
{
    const uint32_t blocks = ct_table_get(&ranges, address);
    if (blocks) {
        change(address, blocks, -1);
        ct_table_set(&ranges, address, 0);
        ct_table_set(&learned[0], address, 0);
        ct_table_set(&learned[1], address, 0);
    }
}

void ct_addresses_learn(uint64_t address, uint64_t bytes)
{
    if (address == 0 || address >= ADDRESSES_END || bytes > ADDRESSES_END - address || !ct_table_lock())
        return;
    forget(address);
    const uint64_t last = (address + (bytes ? bytes - 1 : 0)) >> SMALLEST;
    const uint64_t blocks = last - (address >> SMALLEST) + 1;
    if (blocks <= UINT32_MAX && ct_table_set(&ranges, address, (uint32_t)blocks))
        change(address, blocks, 1);
    const uint64_t now = ct_process_current() ? ct_now() : 0; /* 0 while nothing is recorded */
    ct_table_set(&learned[0], address, (uint32_t)now);
    ct_table_set(&learned[1], address, (uint32_t)(now >> 32));
    ct_table_unlock();
}

void ct_addresses_forget(uint64_t address, uint64_t began)
{
    if (!ct_table_get(&ranges, address) || !ct_table_lock())
        return;
    const uint64_t when =
        (uint64_t)ct_table_get(&learned[1], address) << 32 | ct_table_get(&learned[0], address);
    if (when < began)
        forget(address);
    ct_table_unlock();
}

bool ct_addresses_are_device(uint64_t address)
{
    for (unsigned level = 0; level < CT_ARRAY_LENGTH(shifts); level++) {
        if (ct_table_get(&held, key_of(address, level)))
            return true;
    }
    return false;
}
