/* The roles of proto/role.def as an enumeration: CT_ROLE_stream and so on. */
#ifndef CT_PROTO_ROLE_H
#define CT_PROTO_ROLE_H

enum ct_role {
#define ROLE(name) CT_ROLE_##name,
#include "role.def"
#undef ROLE
    CT_ROLE_COUNT
};

#endif
