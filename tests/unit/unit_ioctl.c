/* Tests that the hook correctly reads an ioctl's struct in every layout that the driver has used, and that
 * invalid pointers do no harm. Also tests that the collector finds the name for every number that has a
 * name. */
#include "../ensure.h"
#include "ioctl_layout.h"
#include "ioctl_names.h"
#include "names.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

static uint32_t request_of(uint32_t number, uint32_t bytes)
{
    return (uint32_t)_IOC(_IOC_READ | _IOC_WRITE, CT_IOCTL_TYPE, number, bytes);
}

static void put(uint8_t *bytes, size_t offset, uint32_t value)
{
    memcpy(bytes + offset, &value, sizeof(value));
}

static struct ct_ioctl escape(uint32_t number, uint32_t bytes, const void *argument, uint32_t release)
{
    return ct_ioctl_parse_escape(request_of(number, bytes), (uintptr_t)argument, release);
}

static void test_control(void)
{
    uint8_t control[32] = { 0 };
    put(control, 8, 0x20800102);
    put(control, 24, 1032);
    put(control, 28, 0x56);
    const struct ct_ioctl ioctl = escape(0x2a, sizeof(control), control, 0);
    ENSURE(ioctl.space == CT_IOCTL_CONTROL && ioctl.code == 0x20800102 && ioctl.escape == 0x2a);
    ENSURE(ioctl.bytes == 1032 && ioctl.size_bytes == 32);
    ENSURE(ct_ioctl_status(&ioctl) == 0x56);

    /* If the driver does not accept a struct's size, the hook does not read the struct. */
    const struct ct_ioctl cut = escape(0x2a, 16, control, 0);
    ENSURE(cut.space == CT_IOCTL_ESCAPE && cut.code == 0x2a && cut.status_offset == -1 &&
           ct_ioctl_status(&cut) == 0);

    /* Read the same struct at an odd address. */
    uint8_t odd[33];
    memcpy(odd + 1, control, sizeof(control));
    const struct ct_ioctl at_odd = escape(0x2a, sizeof(control), odd + 1, 0);
    ENSURE(at_odd.code == 0x20800102 && ct_ioctl_status(&at_odd) == 0x56);
}

/* Stores each word's offset in the word itself, so that a value shows where it was read. */
static void number_words(uint8_t *bytes, uint32_t size)
{
    for (uint32_t offset = 0; offset + 4 <= size; offset += 4)
        put(bytes, offset, offset);
}

static void test_layouts(void)
{
    static const struct {
        bool uvm;
        uint32_t number, bytes, release;
        int32_t status_at;
    } wanted[] = {
        { false, 0x29, 16, 0, 12 },       { false, 0x2b, 32, 515043, 24 }, { false, 0x2b, 32, 580065, 28 },
        { false, 0x2b, 40, 515105, 32 },  { false, 0x2b, 40, 525060, 36 }, { false, 0x2b, 48, 0, 40 },
        { false, 0x4a, 184, 0, 20 },      { false, 0x4e, 56, 0, 40 },      { false, 0x57, 56, 550000, 48 },
        { false, 0x57, 64, 595000, 56 },  { false, 0xc8, 72, 0, -1 },      { false, 0xce, 16, 0, 12 },
        { false, 0xfe, 16, 0, -1 },       { true, 27, 56, 0, 48 },         { true, 33, 9264, 0, 9260 },
        { true, 33, 9264, 580065, 9260 }, { true, 34, 16, 595045, 8 },     { true, 34, 24, 580065, 16 },
        { true, 0x30000001, 16, 0, 8 },   { true, 2000, 0, 0, -1 },
    };
    static uint8_t bytes[16384];
    number_words(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const struct ct_ioctl ioctl =
            wanted[i].uvm ? ct_ioctl_parse_uvm(wanted[i].number, (uintptr_t)bytes, wanted[i].release)
                          : escape(wanted[i].number, wanted[i].bytes, bytes, wanted[i].release);
        if (ioctl.status_offset != wanted[i].status_at || ioctl.size_bytes != wanted[i].bytes) {
            fprintf(stderr, "0x%x of %u bytes in %u: status at %d of %u bytes\n", wanted[i].number,
                    wanted[i].bytes, wanted[i].release, ioctl.status_offset, ioctl.size_bytes);
            exit(EXIT_FAILURE);
        }
        ENSURE(ct_ioctl_status(&ioctl) == (wanted[i].status_at < 0 ? 0 : wanted[i].status_at));
    }
    /* Before driver 550, a mapping listed 32 GPUs. */
    const struct ct_ioctl old = ct_ioctl_parse_uvm(33, (uintptr_t)bytes, 535104);
    ENSURE(old.size_bytes == 1200 && old.status_offset == 1196);
}

static void test_transfer(void)
{
    uint8_t alloc[48] = { 0 }, transfer[16];
    put(alloc, 12, 0xc86f);
    put(alloc, 40, 0x1b);
    const uint64_t pointer = (uintptr_t)alloc;
    put(transfer, 0, 0x2b);
    put(transfer, 4, sizeof(alloc));
    memcpy(transfer + 8, &pointer, sizeof(pointer));
    struct ct_ioctl ioctl = escape(0xd3, sizeof(transfer), transfer, 0);
    ENSURE(ioctl.space == CT_IOCTL_CLASS && ioctl.code == 0xc86f && ioctl.bytes == 48);
    ENSURE(ct_ioctl_status(&ioctl) == 0x1b);

    /* A request for memory has the memory's size, if its parameters can be read. */
    uint64_t memory[12] = { [8] = UINT64_C(3) << 32 };
    const uint64_t of_memory = (uintptr_t)memory, nowhere = 8;
    put(alloc, 12, 0x40);
    memcpy(alloc + 16, &of_memory, sizeof(of_memory));
    ioctl = escape(0x2b, sizeof(alloc), alloc, 0);
    ENSURE(ioctl.code == 0x40 && ioctl.bytes == UINT64_C(3) << 32);
    memcpy(alloc + 16, &nowhere, sizeof(nowhere));
    ioctl = escape(0x2b, sizeof(alloc), alloc, 0);
    ENSURE(ioctl.code == 0x40 && ioctl.bytes == sizeof(alloc));

    /* The pointer in a transfer may also be invalid. */
    memset(transfer + 8, 0, sizeof(pointer));
    ioctl = escape(0xd3, sizeof(transfer), transfer, 0);
    ENSURE(ioctl.space == CT_IOCTL_ESCAPE && ioctl.code == 0x2b && ct_ioctl_status(&ioctl) == 0);
}

static void test_pointers(void)
{
    const size_t page = 4096;
    uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ENSURE(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    uint32_t value;
    put(pages, page - 4, 77);
    ENSURE(ct_ioctl_peek((uintptr_t)pages + page - 4, &value, 4) && value == 77);
    ENSURE(!ct_ioctl_peek((uintptr_t)pages + page - 2, &value, 4));
    ENSURE(!ct_ioctl_peek((uintptr_t)pages + page, &value, 4));
    ENSURE(!ct_ioctl_peek(0, &value, 4));
    ENSURE(!ct_ioctl_peek(UINT64_MAX - 1, &value, 4));
    ENSURE(!ct_ioctl_peek(UINT64_C(0x8000000000000000), &value, 4));

    const struct ct_ioctl gone = escape(0x2a, 32, pages + page, 0);
    ENSURE(gone.space == CT_IOCTL_ESCAPE && gone.code == 0x2a && gone.bytes == 32);
    ENSURE(ct_ioctl_status(&gone) == 0);
    const struct ct_ioctl half = escape(0x2a, 32, pages + page - 16, 0);
    ENSURE(half.space == CT_IOCTL_ESCAPE && ct_ioctl_status(&half) == 0);
    ENSURE(escape(0xd3, 16, pages + page, 0).code == 0xd3);

    /* Checking addresses must not change the signal mask. */
    sigset_t before, after;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    sigprocmask(SIG_BLOCK, &before, NULL);
    ct_ioctl_peek((uintptr_t)pages, &value, 4);
    sigprocmask(SIG_BLOCK, NULL, &after);
    ENSURE(sigismember(&after, SIGUSR2) && !sigismember(&after, SIGUSR1));
}

static void test_release(void)
{
    ENSURE(ct_ioctl_release("580.65.06", 8) == 580065);
    ENSURE(ct_ioctl_release("525.105.17", 8) == 525105);
    ENSURE(ct_ioctl_release("595.45", 7) == 595045);
    ENSURE(ct_ioctl_release("595", 4) == 0);
    ENSURE(ct_ioctl_release("", 1) == 0 && ct_ioctl_release("r580.1", 7) == 0);
    ENSURE(ct_ioctl_release("99999.1", 8) == 0);
}

static void test_filter(void)
{
    ENSURE(ct_ioctl_is_escape(request_of(0x2a, 32)) && !ct_ioctl_is_escape(0x5401) &&
           !ct_ioctl_is_escape(27));
    ENSURE(ct_ioctl_is_uvm(1) && ct_ioctl_is_uvm(2047) && ct_ioctl_is_uvm(0x30000001) &&
           ct_ioctl_is_uvm(0x30000002));
    ENSURE(!ct_ioctl_is_uvm(0) && !ct_ioctl_is_uvm(2048) && !ct_ioctl_is_uvm(0x5401) &&
           !ct_ioctl_is_uvm(0x30000003));
}

static void expect_name(enum ct_ioctl_space space, uint32_t code, const char *sent, const char *wanted)
{
    char number[CT_IOCTL_NAME_BYTES], name[CT_IOCTL_NAME_MAX + 1] = "";
    uint32_t category = 0;
    ct_ioctl_name(&(struct ct_ioctl){ .space = space, .code = code }, number);
    const bool found = ct_ioctl_names_find(number, 0, name, &category);
    if ((sent && strcmp(number, sent) != 0) || found != (wanted != NULL) ||
        (wanted && strcmp(name, wanted) != 0)) {
        fprintf(stderr, "%d 0x%x is sent as %s and shown as %s\n", space, code, number,
                found ? name : "a number");
        exit(EXIT_FAILURE);
    }
    ENSURE(category < CT_CATEGORY_COUNT);
}

static void test_names(void)
{
    expect_name(CT_IOCTL_CONTROL, 0x20800102, "RM_CONTROL 0x20800102",
                "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2");
    expect_name(CT_IOCTL_CONTROL, 0x101, "RM_CONTROL 0x00000101",
                "RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION");
    expect_name(CT_IOCTL_CONTROL, 0xfffffffe, "RM_CONTROL 0xfffffffe", NULL);
    expect_name(CT_IOCTL_CLASS, 0x41, "RM_ALLOC 0x0041", "RM_ALLOC NV01_ROOT_CLIENT");
    expect_name(CT_IOCTL_CLASS, 0x80, "RM_ALLOC 0x0080", "RM_ALLOC NV01_DEVICE_0");
    expect_name(CT_IOCTL_CLASS, 0xcbc0, "RM_ALLOC 0xcbc0", "RM_ALLOC HOPPER_COMPUTE_A");
    expect_name(CT_IOCTL_UVM, 33, "UVM 33", "UVM_MAP_EXTERNAL_ALLOCATION");
    expect_name(CT_IOCTL_UVM, 0x30000001, "UVM 0x30000001", "UVM_INITIALIZE");
    expect_name(CT_IOCTL_UVM, 1999, "UVM 1999", NULL);
    expect_name(CT_IOCTL_ESCAPE, 0xc8, "ESC 0xc8", "NV_ESC_CARD_INFO");
    expect_name(CT_IOCTL_ESCAPE, 0xfe, "ESC 0xfe", NULL);

    /* Every row of the table must be found by its number, which shows that the table is sorted as the search
     * requires. */
    enum { ESCAPE = CT_IOCTL_ESCAPE, CONTROL = CT_IOCTL_CONTROL, CLASS = CT_IOCTL_CLASS, UVM = CT_IOCTL_UVM };
    static const struct {
        int space;
        uint32_t number;
        const char *name;
    } rows[] = {
#define IOCTL(space, number, category, name) { space, number, #name },
#define MODESET(number, release, name)
#include "../../collector/source/shm/ioctl_names.def"
#undef MODESET
#undef IOCTL
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char wanted[CT_IOCTL_NAME_MAX + 1];
        const char *prefix = rows[i].space == CONTROL ? "RM_CONTROL "
                             : rows[i].space == CLASS ? "RM_ALLOC "
                                                      : "";
        ENSURE(snprintf(wanted, sizeof(wanted), "%s%s", prefix, rows[i].name) < (int)sizeof(wanted));
        expect_name((enum ct_ioctl_space)rows[i].space, rows[i].number, NULL, wanted);
    }
    /* These names are invalid, but another version of the hook or a hostile program might send them. */
    char name[CT_IOCTL_NAME_MAX + 1];
    uint32_t category;
    static const char *const others[] = { "",     "UVM other", "RM other",
                                          "ESC ", "ESC 0xc8x", "RM_CONTROL 0x1ffffffff" };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        ENSURE(!ct_ioctl_names_find(others[i], 0, name, &category));
}

static void expect_modeset(const char *number, uint32_t release, const char *wanted)
{
    char name[CT_IOCTL_NAME_MAX + 1] = "";
    uint32_t category = CT_CATEGORY_COUNT;
    const bool found = ct_ioctl_names_find(number, release, name, &category);
    ENSURE(found == (wanted != NULL) && (!wanted || strcmp(name, wanted) == 0) &&
           category == CT_CATEGORY_control);
}

/* Commands of nvidia-modeset, which 570.207 and 590.44 renumbered. The commands are read from the struct that
 * the request points to. */
static void test_modeset(void)
{
    expect_modeset("NVKMS 13", 565057, "NVKMS_IOCTL_IDLE_BASE_CHANNEL");
    expect_modeset("NVKMS 13", 570206, "NVKMS_IOCTL_IDLE_BASE_CHANNEL");
    expect_modeset("NVKMS 13", 570207, "NVKMS_IOCTL_CHECK_LUT_NOTIFIER");
    expect_modeset("NVKMS 56", 580159, "NVKMS_IOCTL_EXPORT_VRR_SEMAPHORE_SURFACE");
    expect_modeset("NVKMS 56", 590044, "NVKMS_IOCTL_ENABLE_VBLANK_SYNC_OBJECT");
    expect_modeset("NVKMS 13", 0, NULL);
    expect_modeset("NVKMS 9", 0, "NVKMS_IOCTL_SET_MODE");
    expect_modeset("NVKMS 1999", 580159, NULL);
    expect_modeset("NVKMS other", 580159, NULL);
    expect_modeset("NVKMS ", 580159, NULL);

    uint32_t params[4] = { 13, 600 };
    const uint32_t request = (uint32_t)_IOC(_IOC_READ | _IOC_WRITE, 'm', 0, sizeof(params));
    ENSURE(ct_ioctl_is_modeset(request) && !ct_ioctl_is_modeset(request + 1) && !ct_ioctl_is_escape(request));
    char name[CT_IOCTL_NAME_BYTES];
    struct ct_ioctl ioctl = ct_ioctl_parse_modeset(request, (uintptr_t)params, 0);
    ct_ioctl_name(&ioctl, name);
    ENSURE(strcmp(name, "NVKMS 13") == 0 && ioctl.bytes == 600 && ct_ioctl_status(&ioctl) == 0);
    ioctl = ct_ioctl_parse_modeset(request, 0, 0);
    ct_ioctl_name(&ioctl, name);
    ENSURE(strcmp(name, "NVKMS 0xffffffff") == 0 && ioctl.bytes == 0);
}

int main(void)
{
    test_control();
    test_modeset();
    test_layouts();
    test_transfer();
    test_pointers();
    test_release();
    test_filter();
    test_names();
    return 0;
}
