/* Draws the screen of `cudatrace top`: a line of totals, a line for keys and messages, and the view's rows.
 * Tables are drawn as the query returns them. Columns with a special meaning are recognised by name. */
#include "top_screen.h"

#include "top_attach.h"
#include "top_terminal.h"

#include "clock.h"
#include "printable.h"
#include "room.h"

#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COLUMNS_MAX = 24, ESCAPE = 27, HEAD_LINES = 3, WIDTH_MAX = 60, GAP = 2 };
enum { COLOUR_LOST = 1, COLOUR_OPEN, COLOUR_HEAD };
enum { OPEN_LONG_S = 5, MESSAGE_LINES_MAX = 4 };
/* The interval at which a child's attach messages are polled. */
#define ATTACH_LOOK_S 0.1

struct column {
    char *name;
    int width;
    bool is_number, is_hidden;
};

/* The rows of the latest sample. */
struct grid {
    struct column column[COLUMNS_MAX];
    int columns;
    char **cell; /* row by row */
    size_t rows, room;
};

struct screen {
    struct ct_top *top;
    struct grid grid;
    size_t selected, first; /* indexes of the selected row and of the first row on the screen */
    bool is_paused, is_finding;
    bool is_wrong;   /* show top->problem */
    char gpus[1024]; /* a line about the GPUs; empty: none */
    char xids[192];  /* the number of GPU errors, and the last one; empty if there is none */
    struct ct_top_attach attach;
};

/* ---- rows ---- */

static void clear_grid(struct grid *grid)
{
    for (size_t i = 0; i < grid->rows * (size_t)grid->columns; i++)
        free(grid->cell[i]);
    for (int c = 0; c < grid->columns; c++)
        free(grid->column[c].name);
    free(grid->cell);
    *grid = (struct grid){ 0 };
}

static bool add_row(struct grid *grid, sqlite3_stmt *rows)
{
    if (!ct_make_room(&grid->cell, grid->rows, &grid->room, (size_t)grid->columns * sizeof(*grid->cell)))
        return false;
    char **cell = grid->cell + grid->rows++ * (size_t)grid->columns;
    for (int c = 0; c < grid->columns; c++) {
        struct column *column = &grid->column[c];
        const int type = sqlite3_column_type(rows, c);
        const char *text = (const char *)sqlite3_column_text(rows, c);
        cell[c] = ct_printable(text ? text : "", text ? (size_t)sqlite3_column_bytes(rows, c) : 0);
        column->is_number |= type == SQLITE_INTEGER || type == SQLITE_FLOAT;
        const int width = cell[c] ? ct_text_width(cell[c]) : 0;
        if (width > column->width)
            column->width = width < WIDTH_MAX ? width : WIDTH_MAX;
    }
    return true;
}

static const char *cell_of(const struct grid *grid, size_t row, const char *name)
{
    for (int c = 0; c < grid->columns && row < grid->rows; c++) {
        if (grid->column[c].name && strcmp(grid->column[c].name, name) == 0) {
            const char *cell = grid->cell[row * (size_t)grid->columns + (size_t)c];
            return cell ? cell : "";
        }
    }
    return "";
}

static bool is_untraced(const struct grid *grid, size_t row)
{
    return strcmp(cell_of(grid, row, "state"), "not traced") == 0;
}

/* Keeps the same process selected when rows are reordered, so that a key applies to the right process. If the
 * first row is selected, the selection stays on the first row. */
static void select_pid(struct screen *screen, const char *pid)
{
    const struct grid *grid = &screen->grid;
    for (size_t row = 0; *pid && row < grid->rows; row++) {
        if (strcmp(cell_of(grid, row, "pid"), pid) == 0) {
            screen->selected = row;
            return;
        }
    }
    if (screen->selected >= grid->rows)
        screen->selected = grid->rows ? grid->rows - 1 : 0;
}

static void read_grid(struct screen *screen)
{
    struct grid *grid = &screen->grid;
    char pid[16] = "";
    sqlite3_stmt *rows = ct_top_rows(screen->top);
    screen->is_wrong = !rows;
    if (!rows)
        return;
    if (screen->selected > 0)
        snprintf(pid, sizeof(pid), "%s", cell_of(grid, screen->selected, "pid"));
    clear_grid(grid);
    grid->columns = sqlite3_column_count(rows) < COLUMNS_MAX ? sqlite3_column_count(rows) : COLUMNS_MAX;
    for (int c = 0; c < grid->columns; c++) {
        const char *name = sqlite3_column_name(rows, c);
        grid->column[c] = (struct column){ .name = strdup(name ? name : ""),
                                           .width = ct_text_width(name ? name : ""),
                                           .is_hidden = name && strcmp(name, "process_id") == 0 };
    }
    while (sqlite3_step(rows) == SQLITE_ROW && add_row(grid, rows))
        ;
    sqlite3_finalize(rows);
    select_pid(screen, pid);
}

static double sum_of(const struct grid *grid, const char *name)
{
    double sum = 0;
    for (size_t row = 0; row < grid->rows; row++)
        sum += strtod(cell_of(grid, row, name), NULL);
    return sum;
}

/* Appends a value to the line about GPUs, unless it is NULL or empty. `format` has a %s. */
__attribute__((format(printf, 3, 0))) static void add_value(char *line, size_t bytes, const char *format,
                                                            const char *value)
{
    const size_t used = strlen(line);
    if (value && *value)
        snprintf(line + used, bytes - used, format, value);
}

/* Writes the line about GPUs. A GPU has the form "GPU 0: 95 %, 61.2 of 85.9 GB, 350 W, power cap". */
static void read_gpus(struct screen *screen)
{
    static const char *const formats[] = { "GPU %s:",    NULL,     " %s %%,", " %s",
                                           " of %s GB,", " %s W,", NULL,      " %s," };
    sqlite3_stmt *rows = screen->top->view == CT_TOP_PROCESSES ? ct_top_gpus(screen->top) : NULL;
    char *line = screen->gpus;
    *line = '\0';
    while (rows && sqlite3_step(rows) == SQLITE_ROW) {
        add_value(line, sizeof(screen->gpus), "%s", *line ? "  " : "");
        for (int c = 0; c < (int)(sizeof(formats) / sizeof(formats[0])); c++) {
            if (formats[c])
                add_value(line, sizeof(screen->gpus), formats[c], (const char *)sqlite3_column_text(rows, c));
        }
        line[strlen(line) - 1] = '\0'; /* the comma */
    }
    sqlite3_finalize(rows);
}

static void read_xids(struct screen *screen)
{
    enum { ERRORS, CODE, MEANING, DEVICE };
    sqlite3_stmt *rows = ct_top_xids(screen->top);
    screen->xids[0] = '\0';
    if (rows && sqlite3_step(rows) == SQLITE_ROW) {
        const char *meaning = (const char *)sqlite3_column_text(rows, MEANING);
        const char *device = (const char *)sqlite3_column_text(rows, DEVICE);
        const int errors = sqlite3_column_int(rows, ERRORS);
        snprintf(screen->xids, sizeof(screen->xids), "  %d Xid%s, last %d%s%s%s%s%s", errors,
                 errors == 1 ? "" : "s", sqlite3_column_int(rows, CODE), meaning ? " (" : "",
                 meaning ? meaning : "", meaning ? ")" : "", device ? " on " : "", device ? device : "");
    }
    sqlite3_finalize(rows);
}

/* Returns the index of the column that the user has chosen for sorting, or -1. */
static int sort_column(const struct screen *screen)
{
    const char *sort = screen->top->sort;
    int column = sort ? screen->grid.columns - 1 : -1;
    while (column >= 0 && strcmp(screen->grid.column[column].name, sort) != 0)
        column--;
    return column;
}

/* ---- drawing ---- */

/* Returns the number of lines above the rows. */
static int head_lines(const struct screen *screen)
{
    return HEAD_LINES + (*screen->gpus != '\0');
}

static void take_sample(struct screen *screen)
{
    struct ct_top *top = screen->top;
    ct_top_follow(top);
    screen->is_wrong = !ct_top_sample(top);
    if (!screen->is_wrong)
        read_grid(screen);
    read_gpus(screen);
    if (!screen->is_wrong)
        read_xids(screen);
}

static void draw_head(const struct screen *screen)
{
    const struct ct_top *top = screen->top;
    char line[8192], day[16], others[48] = "", probed[48] = "";
    size_t untraced = 0;
    const time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(day, sizeof(day), "%H:%M:%S", &local);
    const struct grid *grid = &screen->grid;
    const char *state = screen->is_paused ? "paused"
                        : top->why        ? top->why
                        : top->is_live    ? "live"
                                          : "no daemon writes it";
    for (size_t row = 0; row < grid->rows; row++)
        untraced += is_untraced(grid, row);
    const size_t traced = grid->rows - untraced;
    if (untraced)
        snprintf(others, sizeof(others), ", %zu not traced", untraced);
    if (top->probed)
        snprintf(probed, sizeof(probed), " (%lld probed)", top->probed);
    if (top->view == CT_TOP_PROCESSES)
        snprintf(line, sizeof(line),
                 "cudatrace top  %s%s  %zu process%s%s%s  %.0f calls/s  %.0f lost  %s  %s", day, screen->xids,
                 traced, traced == 1 ? "" : "es", probed, others, sum_of(grid, "calls/s"),
                 sum_of(grid, "lost"), state, top->series.path[0]);
    else
        snprintf(line, sizeof(line), "cudatrace top  %s%s  process %lld  %zu %s%s  %.0f calls/s  %s", day,
                 screen->xids, (long long)top->pid, grid->rows,
                 top->view == CT_TOP_FUNCTIONS ? "function" : "thread", grid->rows == 1 ? "" : "s",
                 sum_of(grid, "calls/s"), state);
    attron(A_BOLD);
    mvaddnstr(0, 0, line, ct_text_bytes(line, COLS));
    attroff(A_BOLD);
    if (screen->is_finding)
        snprintf(line, sizeof(line), "find: %s_", top->text);
    else if (screen->is_wrong)
        snprintf(line, sizeof(line), "%s", top->problem);
    else if (top->view == CT_TOP_PROCESSES)
        snprintf(line, sizeof(line), "%s  </> sort  r reverse  / find  a ended  space pause  q quit%s%s",
                 is_untraced(grid, screen->selected) ? "t attach" : "Enter functions",
                 *top->text ? "  only: " : "", top->text);
    else
        snprintf(line, sizeof(line), "Esc back  Tab %s  </> sort  r reverse  / find  space pause  q quit%s%s",
                 top->view == CT_TOP_FUNCTIONS ? "threads" : "functions", *top->text ? "  only: " : "",
                 top->text);
    mvaddnstr(1, 0, line, ct_text_bytes(line, COLS));
    mvaddnstr(2, 0, screen->gpus, ct_text_bytes(screen->gpus, COLS));
}

/* Draws one line of the table, truncated at the screen's edge. The last text column takes up the remaining
 * width. If `row` is beyond the last row, draws the table's header. */
static void draw_row(const struct screen *screen, int y, size_t row)
{
    const struct grid *grid = &screen->grid;
    const bool is_head = row >= grid->rows;
    const int sorted = sort_column(screen);
    int x = 0;
    for (int c = 0; c < grid->columns && x < COLS; c++) {
        const struct column *column = &grid->column[c];
        const char *text = is_head ? column->name : grid->cell[row * (size_t)grid->columns + (size_t)c];
        if (column->is_hidden)
            continue;
        text = text ? text : "";
        const int room = column->width < COLS - x ? column->width : COLS - x;
        const int width = ct_text_width(text), pad = column->is_number && width < room ? room - width : 0;
        chtype colour = 0;
        if (!is_head && strcmp(column->name, "lost") == 0 && strcmp(text, "0") != 0)
            colour = (chtype)COLOR_PAIR(COLOUR_LOST) | A_BOLD;
        else if (!is_head && (strcmp(column->name, "open_s") == 0 || strcmp(column->name, "gpu_s") == 0) &&
                 strtod(text, NULL) >= OPEN_LONG_S)
            colour = (chtype)COLOR_PAIR(COLOUR_OPEN) | A_BOLD;
        if (is_head && c == sorted)
            colour = A_UNDERLINE | A_BOLD;
        attron(colour);
        mvaddnstr(y, x + pad, text, ct_text_bytes(text, room));
        attroff(colour);
        x += column->width + GAP;
    }
}

/* Draws the row of an untraced process, which has no numbers. The command is next to the pid, so that it is
 * visible on any terminal. */
static void draw_untraced(const struct screen *screen, int y, size_t row)
{
    const struct grid *grid = &screen->grid;
    char line[1024];
    snprintf(line, sizeof(line), "%*s  not traced  %s", grid->column[0].width, cell_of(grid, row, "pid"),
             cell_of(grid, row, "command"));
    attron(A_DIM);
    mvaddnstr(y, 0, line, ct_text_bytes(line, COLS));
    attroff(A_DIM);
}

/* Returns how many bytes of the text fit on a line. Breaks the line at a space if there is one. */
static int line_bytes(const char *text)
{
    const int bytes = ct_text_bytes(text, COLS);
    for (int at = bytes; text[bytes] && at > 0; at--) {
        if (text[at] == ' ')
            return at;
    }
    return bytes;
}

/* Draws the attach message in the last lines of the screen. Returns the number of lines. */
static int draw_message(const struct screen *screen)
{
    const char *line[MESSAGE_LINES_MAX], *text = screen->attach.text;
    const int room = LINES > head_lines(screen) ? LINES - head_lines(screen) : 0;
    int lines = 0;
    for (; *text && lines < MESSAGE_LINES_MAX && lines < room; lines++) {
        line[lines] = text;
        text += line_bytes(text);
        text += strspn(text, " ");
    }
    attron(A_BOLD);
    for (int i = 0; i < lines; i++)
        mvaddnstr(LINES - lines + i, 0, line[i], line_bytes(line[i]));
    attroff(A_BOLD);
    return lines;
}

static void draw(struct screen *screen)
{
    const struct grid *grid = &screen->grid;
    erase();
    const int below = draw_message(screen), head = head_lines(screen);
    const size_t lines = LINES > head + below ? (size_t)(LINES - head - below) : 0;
    if (screen->selected < screen->first)
        screen->first = screen->selected;
    if (lines && screen->selected >= screen->first + lines)
        screen->first = screen->selected - lines + 1;
    draw_head(screen);
    attron(A_REVERSE);
    mvhline(head - 1, 0, ' ', COLS);
    draw_row(screen, head - 1, SIZE_MAX);
    attroff(A_REVERSE);
    if (grid->rows == 0)
        mvaddnstr(head, 0,
                  *screen->top->text ? "no row with that text"
                  : screen->top->view != CT_TOP_PROCESSES
                      ? "it has made no calls yet"
                      : "no traced process is running: press a to show those that have ended",
                  COLS);
    for (size_t i = 0; i < lines && screen->first + i < grid->rows; i++) {
        const size_t row = screen->first + i;
        if (row == screen->selected) {
            attron(A_STANDOUT);
            mvhline(head + (int)i, 0, ' ', COLS);
        }
        if (is_untraced(grid, row))
            draw_untraced(screen, head + (int)i, row);
        else
            draw_row(screen, head + (int)i, row);
        attroff(A_STANDOUT);
    }
    refresh();
}

/* ---- keys ---- */

/* Moves the selection to a row. Returns true, as on_move_key() does for keys that move the selection. */
static bool move_to(struct screen *screen, long row)
{
    const long last = (long)screen->grid.rows - 1;
    screen->selected = row < 0 || last < 0 ? 0 : (size_t)(row > last ? last : row);
    return true;
}

/* Switches to another view. The view's first numbers count from the start of each process. From the second
 * sample on, the numbers are current rates. */
static void look_at(struct screen *screen, enum ct_top_view view, int64_t process_id, int64_t pid)
{
    ct_top_look_at(screen->top, view, process_id, pid);
    screen->top->text[0] = '\0';
    screen->selected = screen->first = 0;
    take_sample(screen);
}

static void sort_by(struct screen *screen, int step)
{
    const struct grid *grid = &screen->grid;
    int column = sort_column(screen);
    if (grid->columns == 0)
        return;
    do
        column = (column + step + grid->columns) % grid->columns;
    while (grid->column[column].is_hidden);
    static char sort[64];
    snprintf(sort, sizeof(sort), "%s", grid->column[column].name ? grid->column[column].name : "");
    screen->top->sort = sort;
    screen->top->is_reversed = false;
    read_grid(screen);
}

static void on_find_key(struct screen *screen, int key)
{
    char *text = screen->top->text;
    const size_t length = strlen(text);
    if (key == ESCAPE)
        text[0] = '\0';
    if (key == ESCAPE || key == '\n' || key == KEY_ENTER)
        screen->is_finding = false;
    else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && length > 0)
        text[length - 1] = '\0';
    else if (key >= ' ' && key < 127 && length + 1 < sizeof(screen->top->text))
        snprintf(text + length, sizeof(screen->top->text) - length, "%c", key);
    read_grid(screen);
}

/* Handles a key that moves the selection. Returns false for other keys. */
static bool on_move_key(struct screen *screen, int key)
{
    const long selected = (long)screen->selected,
               page = LINES > head_lines(screen) ? LINES - head_lines(screen) : 1;
    switch (key) {
    case KEY_UP:
    case 'k':
        return move_to(screen, selected - 1);
    case KEY_DOWN:
    case 'j':
        return move_to(screen, selected + 1);
    case KEY_PPAGE:
        return move_to(screen, selected - page);
    case KEY_NPAGE:
        return move_to(screen, selected + page);
    case KEY_HOME:
        return move_to(screen, 0);
    case KEY_END:
        return move_to(screen, (long)screen->grid.rows - 1);
    default:
        return false;
    }
}

static void look_into(struct screen *screen)
{
    const struct grid *grid = &screen->grid;
    const size_t row = screen->selected;
    if (screen->top->view == CT_TOP_PROCESSES && row < grid->rows && !is_untraced(grid, row))
        look_at(screen, CT_TOP_FUNCTIONS, strtoll(cell_of(grid, row, "process_id"), NULL, 10),
                strtoll(cell_of(grid, row, "pid"), NULL, 10));
}

static void attach_to(struct screen *screen)
{
    const struct grid *grid = &screen->grid;
    if (is_untraced(grid, screen->selected))
        ct_top_attach_start(&screen->attach, screen->top,
                            (pid_t)strtol(cell_of(grid, screen->selected, "pid"), NULL, 10));
}

/* Handles a key press. Returns false if the user quits. */
static bool on_key(struct screen *screen, int key)
{
    struct ct_top *top = screen->top;
    if (screen->is_finding && key != KEY_RESIZE) {
        on_find_key(screen, key);
        return true;
    }
    if (on_move_key(screen, key))
        return true;
    switch (key) {
    case 'q':
        return false;
    case '<':
    case KEY_LEFT:
        sort_by(screen, -1);
        break;
    case '>':
    case KEY_RIGHT:
        sort_by(screen, 1);
        break;
    case 'r':
        top->is_reversed = !top->is_reversed;
        read_grid(screen);
        break;
    case '/':
        top->text[0] = '\0';
        screen->is_finding = true;
        break;
    case 'a':
        top->all = !top->all;
        read_grid(screen);
        break;
    case ' ':
        screen->is_paused = !screen->is_paused;
        break;
    case '\t':
        if (top->view != CT_TOP_PROCESSES)
            look_at(screen, top->view == CT_TOP_FUNCTIONS ? CT_TOP_THREADS : CT_TOP_FUNCTIONS,
                    top->process_id, top->pid);
        break;
    case '\n':
    case KEY_ENTER:
        look_into(screen);
        break;
    case 't':
        attach_to(screen);
        break;
    case ESCAPE:
    case KEY_BACKSPACE:
    case 127:
        if (*top->text) {
            top->text[0] = '\0';
            read_grid(screen);
        } else if (top->view != CT_TOP_PROCESSES) {
            look_at(screen, CT_TOP_PROCESSES, 0, 0);
        }
        break;
    }
    return true;
}

/* ---- */

static double now_s(void)
{
    return (double)ct_monotonic_ns() / 1e9;
}

/* Runs the screen until the user quits or the terminal is closed. */
static void follow(struct screen *screen)
{
    const struct ct_top *top = screen->top;
    double due_s = now_s() + top->interval_s;
    for (bool goes_on = true; goes_on;) {
        draw(screen);
        const double rest_s = due_s - now_s();
        const double wait_s = screen->attach.child && rest_s > ATTACH_LOOK_S ? ATTACH_LOOK_S : rest_s;
        timeout(wait_s > 0 ? (int)(wait_s * 1000) + 1 : 0);
        const int key = getch();
        if (key != ERR && key != KEY_RESIZE && !screen->attach.child)
            screen->attach.text[0] = '\0'; /* the user has read the message */
        if (key == ERR && now_s() < due_s && tcgetpgrp(STDIN_FILENO) < 0)
            break;
        if (key != ERR)
            goes_on = on_key(screen, key);
        if (ct_top_attach_look(&screen->attach))
            due_s = 0; /* show the outcome at once */
        if (now_s() < due_s)
            continue;
        if (!screen->is_paused)
            take_sample(screen);
        due_s = now_s() + top->interval_s;
    }
}

int ct_top_screen(struct ct_top *top)
{
    struct screen screen = { .top = top };
    setlocale(LC_CTYPE, "");
    set_escdelay(50);
    const char *terminal = getenv("TERM"), *problem = ct_top_terminal_problem();
    if (problem || !newterm(NULL, stdout, stdin))
        return ct_fail(EXIT_FAILURE,
                       "top: this terminal ($TERM: %s) %s; --once and --count print without one",
                       terminal ? terminal : "not set", problem ? problem : "is not known");
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    if (has_colors() && !getenv("NO_COLOR")) {
        start_color();
        use_default_colors();
        init_pair(COLOUR_LOST, COLOR_RED, -1);
        init_pair(COLOUR_OPEN, COLOR_YELLOW, -1);
    }
    top->lists_untraced = true;
    top->hides_unused = true;
    take_sample(&screen);
    follow(&screen);
    endwin();
    clear_grid(&screen.grid);
    return EXIT_SUCCESS;
}
