#include "message.h"

#include <stdarg.h>
#include <stdio.h>

int ct_message(char message[CT_MESSAGE_BYTES], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, CT_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    return -1;
}
