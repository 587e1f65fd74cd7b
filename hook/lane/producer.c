#include "producer.h"

struct ct_producer ct_dormant, ct_unlaned;
__thread struct ct_producer *ct_self = &ct_dormant;
