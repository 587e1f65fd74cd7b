/* Uses a recording as a source. Passes the recorded calls and facts to the ledger again, in the same
 * batches. */
#ifndef CT_REPLAY_SOURCE_H
#define CT_REPLAY_SOURCE_H

#include "source.h"

extern const struct ct_file_source ct_replay_files;

#endif
