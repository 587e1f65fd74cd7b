/* Uses dlsym() as programs do. The result depends on the caller and on the symbol's version. Prints the
 * results, and what dlerror() returns after failures. liblookup_first.so and liblookup_second.so (compiled
 * with -DLOOKUP) both export lookup_which(). The function in the first library also looks up the next
 * lookup_which(). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LOOKUP

int lookup_which(void)
{
    return LOOKUP;
}

/* Names that begin like the driver's names but are not driver functions, because "cu" is not followed by an
 * upper-case letter. */
int cublasCreate_v2(void)
{
    return 1000 + LOOKUP;
}

int cudaMalloc(void)
{
    return 2000 + LOOKUP;
}

int cu(void)
{
    return 3000 + LOOKUP;
}

int cuLookup(void)
{
    return 4000 + LOOKUP;
}

#if LOOKUP == 1
int lookup_next(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "lookup_which");
    return next ? next() : -1;
}

/* Calls the cuLookup() of the next library in the search order, which is not the driver. */
int lookup_next_cu(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "cuLookup");
    return next ? next() : -1;
}
#endif

#else

int lookup_which(void);
int lookup_next(void);
int lookup_next_cu(void);

/* Programs that were built at different times use different versions of dlsym. */
#ifdef __x86_64__
void *dlsym_old(void *, const char *);
__asm__(".symver dlsym_old,dlsym@GLIBC_2.2.5");
#else
#define dlsym_old dlsym
#endif

int main(void)
{
    printf("first: %d, next of first: %d, next of a driver's kind: %d\n", lookup_which(), lookup_next(),
           lookup_next_cu());
    static const char *const names[] = { "cublasCreate_v2", "cudaMalloc", "cu", "cuLookup", "lookup_which" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int (*found)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, names[i]);
        int (*old)(void) = (int (*)(void))dlsym_old(RTLD_DEFAULT, names[i]);
        int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, names[i]);
        printf("%s: %d, by the old version %d, next %d, error %s\n", names[i], found ? found() : -1,
               found == old, next ? next() : -1, dlerror() ? "yes" : "none");
    }
    static const char *const absent[] = { "cuNoSuchThing", "cublasNoSuchThing",
                                          "cu"
                                          "InitNot",
                                          "" };
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        void *found = dlsym(RTLD_DEFAULT, absent[i]);
        const char *error = dlerror();
        printf("'%s': %d, error names it: %d", absent[i], found != NULL,
               error && strstr(error, "undefined symbol") && strstr(error, absent[i]));
        printf(", once: %d\n", dlerror() == NULL);
    }
    return 0;
}

#endif
