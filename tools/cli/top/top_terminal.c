/* Checks the terminal. This is a separate file because <term.h> defines macros named after common words, such
 * as "columns". */
#include "top_terminal.h"

#include <curses.h>
#include <term.h>
#include <unistd.h>

const char *ct_top_terminal_problem(void)
{
    int found;
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return "is not known";
    return tigetstr("cup") ? NULL : "cannot move its cursor";
}
