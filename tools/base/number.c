#include "number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool ct_is_digits(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

bool ct_number_parse(const char *text, int64_t least, int64_t most, int64_t *number)
{
    errno = 0;
    const long long value = strtoll(text, NULL, 10);
    if (!ct_is_digits(text) || errno || value < least || value > most)
        return false;
    *number = value;
    return true;
}

size_t ct_decimal_parse(const char *text, double *number)
{
    const size_t whole = strspn(text, "0123456789");
    const size_t fraction = text[whole] == '.' ? 1 + strspn(text + whole + 1, "0123456789") : 0;
    char digits[64];
    if (whole + fraction == 0 || (whole == 0 && fraction == 1) || whole + fraction >= sizeof(digits))
        return 0;
    memcpy(digits, text, whole + fraction);
    digits[whole + fraction] = '\0';
    *number = strtod(digits, NULL);
    return whole + fraction;
}
