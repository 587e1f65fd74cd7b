/* Pins the versions of the C library's symbols that the hook needs to glibc 2.17 or older, so that one file
 * serves every distribution since 2013. Included first by every file of hook/ (meson passes -include).
 * Symbols that glibc 2.34 moved from libdl, libpthread and librt into libc exist there under their old
 * versions too. A new need shows up in the test `hook-symbols`. */
#if !defined(CT_HOOK_GLIBC_H) && !defined(__ASSEMBLER__)
#define CT_HOOK_GLIBC_H

#include "machine.h"

#define CT_GLIBC_PIN(name) __asm__(".symver " #name "," #name "@" CT_GLIBC_BASE)

CT_GLIBC_PIN(dladdr);
CT_GLIBC_PIN(dlclose);
CT_GLIBC_PIN(dlopen);
CT_GLIBC_PIN(pthread_key_create);
CT_GLIBC_PIN(pthread_setcancelstate);
CT_GLIBC_PIN(pthread_setspecific);
CT_GLIBC_PIN(sem_post);

#if defined(__x86_64__) /* younger than the oldest */
__asm__(".symver dlinfo,dlinfo@GLIBC_2.3.3");
__asm__(".symver dlmopen,dlmopen@GLIBC_2.3.4");
#else
CT_GLIBC_PIN(dlinfo);
CT_GLIBC_PIN(dlmopen);
#endif

#endif
