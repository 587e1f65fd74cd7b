/* The screen of `cudatrace top`. */
#ifndef CT_TOP_SCREEN_H
#define CT_TOP_SCREEN_H

#include "top_sample.h"

/* Takes over the terminal until the user quits. Returns the exit status. */
int ct_top_screen(struct ct_top *top);

#endif
