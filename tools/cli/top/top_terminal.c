/* Apart from the screen, since term.h makes macros of such words as "columns". */
#include "top_screen.h"

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
