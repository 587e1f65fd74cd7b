/* The ring (ring.pml) with a collector that is killed at any two steps. The next collector continues from the position that was committed
 * with the rows, and ignores `tail`. No record is stored twice, and none is left out. Twins: TWIN_BEGIN_AT_TAIL,
 * TWIN_GIVE_BACK_BEFORE_COMMIT. */
#ifdef SMALL
#define DEATHS 1
#define RECORDS 2
#else
#define DEATHS 2
#define RECORDS 3
#endif
#include "ring.pml"
