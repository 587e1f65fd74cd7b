/* The ring (ring.pml) and a collector that is killed at any two steps: the one after it goes on from the position that was
 * committed with the rows, whatever `tail` says by then. Nothing is stored twice, nothing
 * left out. Twins: TWIN_BEGIN_AT_TAIL, TWIN_GIVE_BACK_BEFORE_COMMIT. */
#ifdef SMALL
#define DEATHS 1
#define RECORDS 2
#else
#define DEATHS 2
#define RECORDS 3
#endif
#include "ring.pml"
