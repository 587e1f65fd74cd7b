#include "options.h"

#include "number.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { KNOWN_MAX = 40, FIRST = 1000 /* getopt's result for the table's first row */ };

/* ---- values ---- */

bool ct_take_name(const struct ct_option *option, const char *value)
{
    *(const char **)option->to = value;
    return *value != '\0';
}

bool ct_take_number(const struct ct_option *option, const char *value)
{
    return ct_number_parse(value, option->least, option->most, option->to);
}

bool ct_take_choice(const struct ct_option *option, const char *value)
{
    int number = 0;
    for (const char *at = option->choices; *at; at += *at == '|', number++) {
        const size_t length = strcspn(at, "|");
        if (strlen(value) == length && strncmp(at, value, length) == 0) {
            *(int *)option->to = number;
            return true;
        }
        at += length;
    }
    return false;
}

/* Formats "a|b|c" as "expected a, b or c". */
static int fail_choice(const char *command, const struct ct_option *option, const char *value)
{
    char list[256];
    size_t n = 0;
    for (const char *at = option->choices; *at; at += *at == '|') {
        const size_t length = strcspn(at, "|");
        const char *before = n == 0 ? "" : at[length] ? ", " : " or ";
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%.*s", before, (int)length, at);
        at += length;
    }
    return ct_fail(EXIT_USAGE, "%s: invalid value '%s' for --%s: expected %s", command, value, option->name,
                   list);
}

static int take(const char *command, const struct ct_option *option, const char *value)
{
    bool taken = true;
    if (!option->value)
        *(bool *)option->to = true;
    else if (option->take)
        taken = option->take(option, value);
    else
        *(const char **)option->to = value;
    if (taken)
        return CT_GO_ON;
    return option->choices ? fail_choice(command, option, value)
                           : ct_fail(EXIT_USAGE, "%s: invalid value '%s' for --%s: %s", command, value,
                                     option->name, option->wrong);
}

/* ---- help ---- */

/* Formats an option as "[--format text|csv]" or "[--all]". In a required choice, the first option becomes
 * "(--pid PID |" and the last one "--all)". */
static int name_option(char text[128], const struct ct_option *option, bool is_alternative)
{
    const char *value = option->choices ? option->choices : option->value;
    const char *begin = is_alternative ? "" : option->or_next ? "(" : "[";
    const char *end = option->or_next ? " |" : is_alternative ? ")" : "]";
    return snprintf(text, 128, "%s--%s%s%s%s", begin, option->name, value ? " " : "", value ? value : "",
                    end);
}

static void print_usage(const char *command, const struct ct_usage *usage)
{
    enum { COLUMNS = 88 };
    char text[128];
    const int indent = printf("Usage: cudatrace %s", command);
    int at = indent;
    bool is_alternative = false;
    for (const struct ct_option *option = usage->options; option->name || usage->arguments; option++) {
        const int length = option->name ? name_option(text, option, is_alternative)
                                        : snprintf(text, sizeof(text), "%s", usage->arguments);
        is_alternative = option->or_next;
        if (at + 1 + length > COLUMNS)
            at = printf("\n%*s", indent, "") - 1;
        at += printf(" %s", text);
        if (!option->name)
            break;
    }
    putchar('\n');
}

static int print_help(const char *command, const struct ct_usage *usage)
{
    enum { HELP_COLUMN = 18 };
    print_usage(command, usage);
    printf("\n%s\n", usage->about);
    for (const struct ct_option *option = usage->options; option->name; option++) {
        char name[64];
        snprintf(name, sizeof(name), "--%s%s%s", option->name, option->value ? " " : "",
                 option->value ? option->value : "");
        int at = printf("  %s", name);
        if (at >= HELP_COLUMN)
            at = printf("\n") - 1;
        for (const char *line = option->help; *line; line += strspn(line, "\n")) {
            const int length = (int)strcspn(line, "\n");
            printf("%*s%.*s\n", HELP_COLUMN - at, "", length, line);
            at = 0;
            line += length;
        }
    }
    if (usage->more)
        printf("\n%s", usage->more);
    return EXIT_SUCCESS;
}

/* ---- */

/* Reports the option that getopt did not recognise. If several letters are combined in one word, `optind`
 * still points at that word, so the letter is taken from `optopt`. A value given to --help also sets
 * `optopt`, to 'h'. */
static int fail_unknown(char **argv)
{
    const char *word = argv[optind - 1];
    if (optopt > 0 && optopt < FIRST && optopt != 'h')
        return ct_fail(EXIT_USAGE, "%s: unknown option -%c (see cudatrace %s --help)", argv[0], optopt,
                       argv[0]);
    return ct_fail(EXIT_USAGE, "%s: unknown option %s (see cudatrace %s --help)", argv[0], word, argv[0]);
}

/* Returns the row for getopt's result, which is either a row's number plus FIRST or a letter. */
static const struct ct_option *find_row(const struct ct_option *options, int named)
{
    if (named >= FIRST)
        return &options[named - FIRST];
    while (options->letter != named)
        options++;
    return options;
}

int ct_options_parse(int argc, char **argv, const struct ct_usage *usage, int *first)
{
    struct option known[KNOWN_MAX] = { { "help", no_argument, NULL, 'h' } };
    char letters[3 + 2 * KNOWN_MAX] = "+:h"; /* + makes getopt stop at the first argument */
    char *shorts = usage->runs_command ? letters : letters + 1;
    size_t length = strlen(letters);
    for (int i = 0; usage->options[i].name && i + 2 < KNOWN_MAX; i++) {
        const struct ct_option *option = &usage->options[i];
        known[i + 1] =
            (struct option){ option->name, option->value ? required_argument : no_argument, NULL, FIRST + i };
        if (option->letter)
            letters[length++] = option->letter;
        if (option->letter && option->value)
            letters[length++] = ':';
    }
    optind = 0; /* makes getopt check `shorts` for a + again */
    for (int option; (option = getopt_long(argc, argv, shorts, known, NULL)) != -1;) {
        if (option == 'h')
            return print_help(argv[0], usage);
        if (option == ':')
            return ct_fail(EXIT_USAGE, "%s: option '%s' requires a value (see cudatrace %s --help)", argv[0],
                           argv[optind - 1], argv[0]);
        if (option == '?')
            return fail_unknown(argv);
        const int status = take(argv[0], find_row(usage->options, option), optarg);
        if (status != CT_GO_ON)
            return status;
    }
    *first = optind;
    return CT_GO_ON;
}

int ct_options_check_arguments(int argc, char **argv, const struct ct_usage *usage, int first)
{
    if (usage->arguments || first >= argc)
        return CT_GO_ON;
    return ct_fail(EXIT_USAGE, "%s: unknown argument '%s' (see cudatrace %s --help)", argv[0], argv[first],
                   argv[0]);
}
