#include "hook_script.h"

#include <stdio.h>

static const char *type_of(const struct ct_hook_source *source)
{
    static const char *const types[2][9] = {
        { [1] = "uint8", [2] = "uint16", [4] = "uint32", [8] = "uint64" },
        { [1] = "int8", [2] = "int16", [4] = "int32", [8] = "int64" }
    };
    return types[source->is_signed != 0][source->bytes % 9];
}

/* Returns whether the script prints a call immediately. Otherwise, it keeps the call's time and arguments in
 * maps until the call returns. */
static bool is_instant(const struct ct_hook_entry *hook)
{
    return hook->kind == CT_HOOK_TRACEPOINT || hook->rule.is_entry;
}

/* Returns the name that bpftrace gives to an argument at a function's entry. */
static const char *name_of_argument(char name[16], unsigned argument)
{
    if (argument < CT_PROBE_REGISTERS)
        snprintf(name, 16, "arg%u", argument);
    else
        snprintf(name, 16, "sarg%u", argument - CT_PROBE_REGISTERS + 1);
    return name;
}

/* Prints an expression for the source's value. `place` is the name of a field in the tracepoint's record, or
 * NULL. */
static void print_source(const struct ct_hook_entry *hook, const struct ct_hook_source *source,
                         const char *place)
{
    char base[128];
    if (source->form == CT_FORM_TASK) {
        printf("comm");
        return;
    }
    switch ((enum ct_hook_origin)source->origin) {
    case CT_ORIGIN_RECORD:
        printf(source->form == CT_FORM_LOCATION ? "str(args->%s)" : "args->%s", place);
        return;
    case CT_ORIGIN_DURATION:
        printf("(nsecs - @%s[tid])", hook->name);
        return;
    case CT_ORIGIN_PID:
    case CT_ORIGIN_TID:
        printf(source->origin == CT_ORIGIN_PID ? "pid" : "tid");
        return;
    case CT_ORIGIN_RESULT:
        snprintf(base, sizeof(base), "retval");
        break;
    case CT_ORIGIN_ARGUMENT:
        if (is_instant(hook))
            name_of_argument(base, source->argument);
        else
            snprintf(base, sizeof(base), "@%s_arg%u[tid]", hook->name, source->argument);
        break;
    }
    if (ct_hook_is_text(source))
        printf("str(%s + %d)", base, source->offset);
    else if (source->form == CT_FORM_MEMORY)
        printf("*(%s *)(%s + %d)", type_of(source), base, source->offset);
    else
        printf("(%s)%s", type_of(source), base);
}

static void print_conditions(const struct ct_hook_entry *hook)
{
    static const char *const comparisons[] = {
        [CT_IS_EQUAL] = "==",         [CT_IS_UNEQUAL] = "!=", [CT_IS_LESS] = "<",
        [CT_IS_LESS_OR_EQUAL] = "<=", [CT_IS_GREATER] = ">",  [CT_IS_GREATER_OR_EQUAL] = ">=",
        [CT_HAS_BITS] = "&",
    };
    for (uint32_t i = 0; i < hook->rule.conditions; i++) {
        const struct ct_hook_condition *condition = &hook->rule.condition[i];
        printf("%s%s", i == 0 ? "    if (" : " && ", condition->comparison == CT_HAS_BITS ? "(" : "");
        print_source(hook, &condition->source, hook->condition_place[i]);
        printf(condition->comparison == CT_HAS_BITS ? " %s %lld) != 0" : " %s %lld",
               comparisons[condition->comparison], (long long)condition->number);
    }
    if (hook->rule.conditions > 0)
        puts(") {");
}

static void print_sums(const struct ct_hook_entry *hook)
{
    printf("%s@calls[\"%s\"] = ", hook->rule.conditions > 0 ? "        " : "    ", hook->name);
    if (is_instant(hook))
        puts("count();");
    else
        printf("stats(nsecs - @%s[tid]);\n", hook->name);
}

static void print_output(const struct ct_hook_entry *hook)
{
    const struct ct_hook_rule *rule = &hook->rule;
    if (rule->one_of == CT_HOOK_COUNTS) {
        print_sums(hook);
        return;
    }
    printf("%sprintf(\"%%d %%d %s", rule->conditions > 0 ? "        " : "    ", hook->name);
    if (!is_instant(hook))
        printf(" %%llu ns");
    for (uint32_t i = 0; i < rule->fields; i++) {
        printf(" %s=%s", hook->field_name[i],
               ct_hook_is_text(&rule->field[i]) ? "%s"
               : rule->field[i].is_signed       ? "%lld"
                                                : "%llu");
    }
    printf("\\n\", pid, tid");
    if (!is_instant(hook))
        printf(", nsecs - @%s[tid]", hook->name);
    for (uint32_t i = 0; i < rule->fields; i++) {
        printf(", ");
        print_source(hook, &rule->field[i], hook->field_place[i]);
    }
    puts(");");
}

/* Returns a bit mask of the arguments that the sources use. */
static uint32_t arguments_of(const struct ct_hook_rule *rule)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < (uint32_t)rule->fields + rule->conditions; i++) {
        const struct ct_hook_source *source =
            i < rule->fields ? &rule->field[i] : &rule->condition[i - rule->fields].source;
        if (source->origin == CT_ORIGIN_ARGUMENT)
            bits |= 1U << source->argument;
    }
    return bits;
}

/* Prints the probe at the function's entry, which stores the time and the arguments until the return. */
static void print_entry(const struct ct_hook_entry *hook, const char *target)
{
    const uint32_t arguments = arguments_of(&hook->rule);
    printf("%s {\n    @%s[tid] = nsecs;\n", target, hook->name);
    for (int i = 0; i < CT_PROBE_ARGUMENTS; i++) {
        char name[16];
        if (arguments & 1U << i)
            printf("    @%s_arg%d[tid] = %s;\n", hook->name, i, name_of_argument(name, (unsigned)i));
    }
    puts("}");
}

static void print_return(const struct ct_hook_entry *hook, const char *target)
{
    const uint32_t arguments = arguments_of(&hook->rule);
    printf("%s /@%s[tid]/ {\n", target, hook->name);
    print_conditions(hook);
    print_output(hook);
    if (hook->rule.conditions > 0)
        puts("    }");
    printf("    delete(@%s[tid]);\n", hook->name);
    for (int i = 0; i < CT_PROBE_ARGUMENTS; i++) {
        if (arguments & 1U << i)
            printf("    delete(@%s_arg%d[tid]);\n", hook->name, i);
    }
    puts("}");
}

static void print_hook(const struct ct_hook_entry *hook)
{
    char target[2048];
    if (hook->rule.per_second > 0)
        printf("// bpftrace has no limit of %u/s.\n", hook->rule.per_second);
    if (hook->rule.one_of > 1 && hook->rule.one_of != CT_HOOK_COUNTS)
        printf("// bpftrace prints all calls, and not one of %u.\n", hook->rule.one_of);
    const bool is_kernel = hook->kind == CT_HOOK_KPROBE;
    if (hook->kind == CT_HOOK_TRACEPOINT)
        snprintf(target, sizeof(target), "tracepoint:%s:%s", hook->place, hook->symbol);
    else
        snprintf(target, sizeof(target), is_kernel ? "kprobe:%s" : "uprobe:\"%s\":%s",
                 is_kernel ? hook->function : hook->place, hook->symbol);
    if (is_instant(hook)) {
        printf("%s {\n", target);
        print_conditions(hook);
        print_output(hook);
        puts(hook->rule.conditions > 0 ? "    }\n}" : "}");
        return;
    }
    print_entry(hook, target);
    snprintf(target, sizeof(target), is_kernel ? "kretprobe:%s" : "uretprobe:\"%s\":%s",
             is_kernel ? hook->function : hook->place, hook->symbol);
    print_return(hook, target);
}

void ct_hook_script_print(const struct ct_hook_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct ct_hook_entry *hook = &table->hook[i];
        if (hook->is_found)
            print_hook(hook);
    }
}
