/* The categories of proto/category.def as an enumeration: CT_CATEGORY_launch and so on. */
#ifndef CT_PROTO_CATEGORY_H
#define CT_PROTO_CATEGORY_H

enum ct_category {
#define CATEGORY(name) CT_CATEGORY_##name,
#include "category.def"
#undef CATEGORY
    CT_CATEGORY_COUNT
};

#endif
