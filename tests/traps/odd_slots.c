/* A driver whose exported functions only resemble calls through a slot, and a program that calls each of
 * these functions.
 *
 *   -DDRIVER    the driver
 *   -DLIBRARY   a library linked against it, whose pointer to a function of the driver is protected
 *   neither     the program, which loads the library given as its argument */
#include <sys/mman.h>

#ifdef DRIVER
#define RETURNS(name, value)                                                                                 \
    static __attribute__((used)) int name(void)                                                              \
    {                                                                                                        \
        return value;                                                                                        \
    }
RETURNS(one, 1)
RETURNS(two, 2)
RETURNS(three, 3)
RETURNS(four, 4)
RETURNS(five, 5)
RETURNS(six, 6)
RETURNS(seven, 7)
RETURNS(eight, 8)
RETURNS(nine, 9)
RETURNS(ten, 10)

/* A function of the C library, for a slot that points outside the driver. */
extern int getpagesize(void);

/* name of the function, the word that marks the end of the driver, the word's value, the instructions that
 * use the slot */
#define EXPORT(name, word, value, through)                                                                   \
    __asm__(".text; .globl " #name "; .type " #name ", @function; .p2align 4; " #name ": cmpl $" #value      \
            ", " #word "(%rip); je 1f; " through "; 1: movl $4, %eax; ret; .size " #name ", .-" #name);
EXPORT(cuInit, gone, 0x321cba00, "jmp *slot_one(%rip)")
EXPORT(cuDeviceGet, gone, 0x321cba00, "jmp *slot_two(%rip)")
EXPORT(cuDeviceGetCount, gone, 0x321cba00, "jmp *slot_two(%rip)")        /* the same slot */
EXPORT(cuDeviceGetName, gone, 0x321cba01, "jmp *slot_three(%rip)")       /* another value of the word */
EXPORT(cuDeviceGetUuid, gone, 0x321cba00, "jmp four")                    /* no slot */
EXPORT(cuCtxGetFlags, gone, 0x321cba00, "jmp *sealed_five(%rip)")        /* the slot is read-only */
EXPORT(cuCtxGetLimit, text_word, 0x321cba00, "jmp *slot_six(%rip)")      /* the word is not data */
EXPORT(cuCtxGetDevice, gone, 0x321cba00, "jmp *slot_outside(%rip)")      /* the slot leads outside */
EXPORT(cuCtxGetCurrent, gone, 0x321cba00, "jmp *slot_odd(%rip)")         /* between two slots */
EXPORT(cuCtxGetId, gone, 0x321cba00, "nop; jmp *slot_eight(%rip)")       /* one instruction later */
EXPORT(cuCtxGetCacheConfig, gone, 0x321cba00, "jmp *slot_nine(%rip)")    /* slot protected at the start */
EXPORT(cuCtxGetSharedMemConfig, gone, 0x321cba00, "jmp *slot_ten(%rip)") /* slot protected later */
__asm__(".text; text_word: .long 0");
__asm__(".data; gone: .long 0; .p2align 3; slot_one: .quad one; slot_two: .quad two; slot_three: .quad "
        "three; slot_six: .quad six;"
        "slot_outside: .quad getpagesize; slot_eight: .quad eight; .byte 0, 0, 0, 0; slot_odd: .quad seven; "
        ".p2align 3");
__asm__(".data; .p2align 12; slot_nine: .quad nine; .p2align 12; slot_ten: .quad ten; .p2align 12; .byte 0");
extern char slot_nine[] __attribute__((visibility("hidden"))),
    slot_ten[] __attribute__((visibility("hidden")));
static __attribute__((constructor)) void protect_nine(void)
{
    mprotect(slot_nine, 4096, PROT_READ);
}
int protect_ten(void)
{
    return mprotect(slot_ten, 4096, PROT_READ);
}
__asm__(".section .data.rel.ro, \"aw\", @progbits; .p2align 3; sealed_five: .quad five; .text");

#elif defined(LIBRARY)
int cuDeviceGetUuid(void);
static struct {
    int (*function)(void);
    char rest[4096 - sizeof(void *)];
} page __attribute__((aligned(4096))) = { cuDeviceGetUuid, "" };

static __attribute__((constructor)) void protect(void)
{
    mprotect(&page, sizeof(page), PROT_READ);
}

int call_by_pointer(void)
{
    return (*(int (*volatile *)(void)) & page.function)();
}

#else
#include <dlfcn.h>
#include <stdio.h>

#define EACH(CALL)                                                                                           \
    CALL(cuInit)                                                                                             \
    CALL(cuDeviceGet)                                                                                        \
    CALL(cuDeviceGetCount)                                                                                   \
    CALL(cuDeviceGetName)                                                                                    \
    CALL(cuDeviceGetUuid)                                                                                    \
    CALL(cuCtxGetFlags)                                                                                      \
    CALL(cuCtxGetLimit)                                                                                      \
    CALL(cuCtxGetDevice)                                                                                     \
    CALL(cuCtxGetCurrent)                                                                                    \
    CALL(cuCtxGetId)                                                                                         \
    CALL(cuCtxGetCacheConfig)                                                                                \
    CALL(cuCtxGetSharedMemConfig)
#define DECLARE(name) int name(long a, long b, long c);
EACH(DECLARE)

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*function)(void) = library ? (int (*)(void))dlsym(library, "call_by_pointer") : NULL;
#define CALL(name)    printf(#name " %d\n", name(0, 0, 0));
    EACH(CALL)
    if (function)
        printf("by pointer %d\n", function());
    return 0;
}
#endif
