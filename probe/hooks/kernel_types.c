#include "kernel_types.h"

#include "room.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

struct function {
    const char *name; /* in the BTF */
    uint32_t prototype;
};

/* The functions of the kernel, or of a module, sorted by name. */
struct image {
    char *module; /* NULL: the kernel */
    struct btf *btf;
    struct function *function;
    size_t functions, room;
};

struct ct_kernel_types {
    struct image *image; /* the first one is the kernel */
    size_t images, room;
};

/* ---- images ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct function *)a)->name, ((const struct function *)b)->name);
}

static void index_functions(struct image *image, uint32_t first)
{
    for (uint32_t id = first; image->btf && id < btf__type_cnt(image->btf); id++) {
        const struct btf_type *type = btf__type_by_id(image->btf, id);
        if (!btf_is_func(type))
            continue;
        if (!ct_make_room(&image->function, image->functions, &image->room, sizeof(struct function)))
            return;
        image->function[image->functions++] =
            (struct function){ .name = btf__name_by_offset(image->btf, type->name_off),
                               .prototype = type->type };
    }
    if (image->functions > 0)
        qsort(image->function, image->functions, sizeof(struct function), compare);
}

static struct btf *load(const char *module, struct btf *kernel)
{
    char path[256];
    if (!module)
        return btf__load_vmlinux_btf();
    snprintf(path, sizeof(path), "/sys/kernel/btf/%s", module);
    return btf__parse_split(path, kernel);
}

/* Returns NULL if out of memory. For a kernel or module without BTF, the image has no functions. */
static struct image *find_image(struct ct_kernel_types *types, const char *module)
{
    for (size_t i = 0; i < types->images; i++) {
        const char *known = types->image[i].module;
        if (known == module || (known && module && strcmp(known, module) == 0))
            return &types->image[i];
    }
    char *name = module ? strdup(module) : NULL;
    if ((module && !name) ||
        !ct_make_room(&types->image, types->images, &types->room, sizeof(struct image))) {
        free(name);
        return NULL;
    }
    struct btf *kernel = types->images > 0 ? types->image[0].btf : NULL;
    struct image *image = &types->image[types->images++];
    *image = (struct image){ .module = name, .btf = load(module, kernel) };
    if (libbpf_get_error(image->btf))
        image->btf = NULL;
    index_functions(image, module ? btf__type_cnt(kernel) : 1);
    return image;
}

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level, (void)format, (void)arguments;
    return 0;
}

struct ct_kernel_types *ct_kernel_types_open(void)
{
    struct ct_kernel_types *types = calloc(1, sizeof(*types));
    libbpf_set_print(print_nothing);
    const struct image *kernel = types ? find_image(types, NULL) : NULL;
    if (kernel && kernel->btf)
        return types;
    ct_kernel_types_close(types);
    return NULL;
}

void ct_kernel_types_close(struct ct_kernel_types *types)
{
    if (!types)
        return;
    for (size_t i = types->images; i-- > 0;) { /* a module's BTF needs the kernel's */
        free(types->image[i].module);
        free(types->image[i].function);
        btf__free(types->image[i].btf);
    }
    free(types->image);
    free(types);
}

/* ---- types ---- */

enum { DEPTH_MAX = 8 }; /* of a type that is printed */

static bool is_transparent(const struct btf_type *type)
{
    return btf_is_typedef(type) || btf_is_mod(type) || btf_is_type_tag(type);
}

static const struct btf_type *without_names(const struct btf *btf, uint32_t id)
{
    const struct btf_type *type = btf__type_by_id(btf, id);
    for (int i = 0; type && is_transparent(type) && i < 64; i++)
        type = btf__type_by_id(btf, type->type);
    return type;
}

/* Writes the type in C notation, except that parameter lists and array sizes are left out: "()" and "[]". */
static void name_type(const struct btf *btf, uint32_t id, char *text, size_t bytes, int depth)
{
    const struct btf_type *type = btf__type_by_id(btf, id);
    char inner[128] = "";
    if (id == 0 || !type || depth == DEPTH_MAX) {
        snprintf(text, bytes, id == 0 ? "void" : "?");
        return;
    }
    const char *name = btf__name_by_offset(btf, type->name_off);
    if (btf_is_ptr(type) || btf_is_mod(type) || btf_is_type_tag(type) || btf_is_array(type))
        name_type(btf, btf_is_array(type) ? btf_array(type)->type : type->type, inner, sizeof(inner),
                  depth + 1);
    if (btf_is_ptr(type))
        snprintf(text, bytes, "%.100s%s*", inner, inner[strlen(inner) - 1] == '*' ? "" : " ");
    else if (btf_is_const(type))
        snprintf(text, bytes, "const %.100s", inner);
    else if (*inner)
        snprintf(text, bytes, "%.100s%s", inner, btf_is_array(type) ? "[]" : "");
    else if (btf_is_func_proto(type))
        snprintf(text, bytes, "function ()");
    else
        snprintf(text, bytes, "%s%s",
                 btf_is_struct(type) || btf_kind(type) == BTF_KIND_FWD ? "struct "
                 : btf_is_union(type)                                  ? "union "
                 : btf_is_any_enum(type)                               ? "enum "
                                                                       : "",
                 name && *name ? name : "{…}");
}

/* How a value of a type is passed in a register. */
struct passed {
    const char *suffix; /* ":u32", or "" for pointers and 64 bits without a sign */
    bool is_text, is_void;
};

/* Returns false for types that are not passed in one register. */
static bool find_passed(const struct btf *btf, uint32_t id, struct passed *passed)
{
    static const char *const suffixes[2][9] = { { [1] = ":u8", [2] = ":u16", [4] = ":u32", [8] = "" },
                                                { [1] = ":s8", [2] = ":s16", [4] = ":s32", [8] = ":s64" } };
    const struct btf_type *type = without_names(btf, id);
    *passed = (struct passed){ .suffix = "", .is_void = id == 0 || (type && btf_is_void(type)) };
    if (!type || passed->is_void)
        return false;
    if (btf_is_ptr(type)) {
        /* A pointer to characters is certain to be a string only if the characters are constant. */
        const struct btf_type *to = btf__type_by_id(btf, type->type);
        bool is_const = false;
        for (; to && is_transparent(to); to = btf__type_by_id(btf, to->type))
            is_const |= btf_is_const(to);
        const char *name = to ? btf__name_by_offset(btf, to->name_off) : NULL;
        passed->is_text = is_const && btf_is_int(to) && name && strcmp(name, "char") == 0;
        passed->suffix = passed->is_text ? ":str" : "";
        return true;
    }
    const bool is_signed = btf_is_int(type) ? btf_int_encoding(type) & BTF_INT_SIGNED : btf_kflag(type);
    if ((!btf_is_int(type) && !btf_is_any_enum(type)) || type->size > 8 || !suffixes[is_signed][type->size])
        return false;
    passed->suffix = suffixes[is_signed][type->size];
    return true;
}

/* Stops at the first argument that does not fit into a register, since the places of later arguments depend
 * on its type. */
static void describe_arguments(const struct btf *btf, const struct btf_type *prototype, int fields_max,
                               struct ct_list_fields *fields)
{
    const struct btf_param *parameter = btf_params(prototype);
    bool is_known = true;
    for (uint32_t i = 0; i < btf_vlen(prototype); i++) {
        char type[128], source[32], unnamed[16];
        struct passed passed;
        const char *name = btf__name_by_offset(btf, parameter[i].name_off);
        snprintf(unnamed, sizeof(unnamed), "arg%u", i);
        if (!name || !*name)
            name = unnamed;
        const bool is_rest = parameter[i].type == 0;
        name_type(btf, parameter[i].type, type, sizeof(type), 0);
        ct_list_declare(fields, "%s%s%s%s", i > 0 ? ", " : "", is_rest ? "..." : type,
                        is_rest || type[strlen(type) - 1] == '*' ? "" : " ", is_rest ? "" : name);
        is_known = is_known && find_passed(btf, parameter[i].type, &passed);
        if (!is_known || i >= CT_PROBE_ARGUMENTS || fields->fields >= fields_max)
            continue;
        snprintf(source, sizeof(source), "arg%u%s", i,
                 passed.is_text && fields->texts == CT_HOOK_TEXTS ? "" : passed.suffix);
        ct_list_add_field(fields, name, source, passed.is_text && fields->texts < CT_HOOK_TEXTS);
    }
}

static void describe(const struct btf *btf, uint32_t id, const char *function, struct ct_list_fields *fields)
{
    const struct btf_type *prototype = btf__type_by_id(btf, id);
    char type[128], source[32];
    struct passed passed;
    name_type(btf, prototype->type, type, sizeof(type), 0);
    const bool has_result = find_passed(btf, prototype->type, &passed);
    ct_list_declare(fields, "%s%s%s(", type, type[strlen(type) - 1] == '*' ? "" : " ", function);
    describe_arguments(btf, prototype, CT_HOOK_FIELDS - has_result, fields);
    ct_list_declare(fields, "%s)", btf_vlen(prototype) == 0 ? "void" : "");
    snprintf(source, sizeof(source), "ret%s", passed.is_text ? "" : *passed.suffix ? passed.suffix : ":u64");
    /* A field called `status` also sets the status of the call. If the result is signed, it may be an
     * error. */
    const bool is_status = !passed.is_text && strncmp(passed.suffix, ":s", 2) == 0;
    if (has_result)
        ct_list_add_field(fields, is_status ? "status" : "result", source, false);
}

bool ct_kernel_types_describe(struct ct_kernel_types *types, const char *module, const char *function,
                              struct ct_list_fields *fields)
{
    const struct image *image = types ? find_image(types, module) : NULL;
    const struct function wanted = { .name = function };
    const struct function *found =
        image && image->functions > 0
            ? bsearch(&wanted, image->function, image->functions, sizeof(wanted), compare)
            : NULL;
    *fields = (struct ct_list_fields){ 0 };
    if (found)
        describe(image->btf, found->prototype, function, fields);
    return found != NULL;
}
