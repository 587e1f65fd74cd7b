#include "doctor_say.h"

#include "printable.h"

#include <stdarg.h>
#include <string.h>

enum { SUBJECT_COLUMN = 8, TEXT_COLUMN = 20 };

/* Paths and command lines may contain any bytes, so all output passes through ct_printable_format(). */

void ct_doctor_head(const char *format, ...)
{
    static bool more;
    va_list arguments;
    va_start(arguments, format);
    char *text = ct_printable_format(format, arguments);
    va_end(arguments);
    printf("%s%s\n", more ? "\n" : "", text ? text : "out of memory");
    free(text);
    more = true;
}

static void print_broken(const char *text, int columns)
{
    int at = TEXT_COLUMN;
    while (*text) {
        const size_t length = strcspn(text, " ");
        const int width = ct_text_width(text) - ct_text_width(text + length);
        if (columns && at > TEXT_COLUMN && at + 1 + width > columns) {
            printf("\n%*s", TEXT_COLUMN, "");
            at = TEXT_COLUMN;
        } else if (at > TEXT_COLUMN) {
            putchar(' ');
            at++;
        }
        fwrite(text, 1, length, stdout);
        at += width;
        text += length;
        text += *text == ' ';
    }
    putchar('\n');
}

void ct_doctor_say(struct ct_doctor *doctor, enum ct_verdict verdict, const char *subject, const char *format,
                   ...)
{
    static const char *const words[] = { "ok", "note", "miss" };
    va_list arguments;
    va_start(arguments, format);
    char *text = ct_printable_format(format, arguments);
    va_end(arguments);
    char *name = ct_printable(subject, strlen(subject)); /* may be a path that the process chose */
    printf("  %-*s%-*s ", SUBJECT_COLUMN - 2, words[verdict], TEXT_COLUMN - SUBJECT_COLUMN - 1,
           name ? name : "out of memory");
    free(name);
    print_broken(text ? text : "out of memory", doctor->columns);
    free(text);
    doctor->misses += verdict == CT_VERDICT_MISS;
}
