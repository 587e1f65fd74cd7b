#include "print_rows.h"

#include "printable.h"

#include <stdlib.h>
#include <string.h>

/* Returns a value as NUL-terminated text and sets *bytes to its length, because the text itself may contain
 * NULs. Callers must query the value's type first, because conversion to text may change the type. */
static const char *text_of(sqlite3_stmt *statement, int column, size_t *bytes)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    *bytes = text ? (size_t)sqlite3_column_bytes(statement, column) : 0;
    return text ? (const char *)text : "";
}

/* Returns a column's name, or "" if SQLite is out of memory. */
static const char *name_of(sqlite3_stmt *statement, int column)
{
    const char *name = sqlite3_column_name(statement, column);
    return name ? name : "";
}

/* ---- tables, for people ---- */

/* Widths and decimals are measured on the first rows, which are held back until the measurement is complete.
 * A value wider than WIDTH_MAX does not widen the other rows. */
enum { ROWS_MEASURED = 1000, BYTES_MEASURED = 16 * 1024 * 1024, WIDTH_MAX = 1000, DECIMALS_MAX = 6 };

/* If lines must be short, text columns are truncated, but not to less than these widths. The first column
 * keeps more, because it names the subject of the row. */
enum { FIRST_MIN = 26, TEXT_MIN = 12 };

struct column {
    int width;    /* in characters */
    int decimals; /* the maximum number of decimals in the column */
    bool numbers, words;
    bool cut; /* some of the column's values are truncated */
};

struct table {
    sqlite3_stmt *statement;
    struct column *column;
    int columns;
    int width;   /* the maximum width of the table; 0: no limit */
    int first;   /* the table's first column; nonzero if a paragraph precedes the table */
    int shown;   /* end of the columns that fit */
    char **name; /* the printable column names */
    char **cell; /* the cells of the measured rows */
    int rows;    /* number of measured rows */
    struct ct_printed printed;
};

static int step(struct table *table)
{
    const int rc = sqlite3_step(table->statement);
    if (rc == SQLITE_ROW && table->printed.rows++ == 0 && table->printed.on_first)
        table->printed.on_first(table->statement, table->printed.data);
    return rc;
}

/* Returns whether a string looks like a number. Numbers that a query has formatted as text are also
 * right-aligned. */
static bool looks_like_number(const char *text)
{
    return *text && strspn(text, "+-.0123456789") == strlen(text);
}

static int decimals_of(const char *number)
{
    const char *point = strchr(number, '.');
    return point ? (int)strlen(point + 1) : 0;
}

static void pad(int count, FILE *to)
{
    if (count > 0)
        fprintf(to, "%*s", count, "");
}

/* Prints a cell, with an ellipsis if it is truncated. Decimal points are aligned. A number with fewer
 * decimals than others in its column is padded with zeros, and one without decimals with spaces. */
static void print_cell(const struct column *column, const char *text, bool last, FILE *to)
{
    const bool number = column->numbers && *text;
    const int more = number ? column->decimals - decimals_of(text) : 0;
    const bool whole = !strchr(text, '.');
    const int behind = more > 0 ? more + whole : 0;
    const int room = column->width - ct_text_width(text) - behind;
    if (room < 0 && column->cut) {
        fprintf(to, "%.*s…", ct_text_bytes(text, column->width - 1), text);
        return;
    }
    if (column->numbers)
        pad(room, to);
    fputs(text, to);
    if (whole && !last)
        pad(behind, to);
    for (int i = 0; i < more && !whole; i++)
        fputc('0', to);
    if (!column->numbers && !last)
        pad(room, to);
}

static void print_row(const struct table *table, char **cell, FILE *to)
{
    for (int c = table->first; c < table->shown; c++) {
        print_cell(&table->column[c], cell[c] ? cell[c] : "", c + 1 == table->shown, to);
        fputs(c + 1 == table->shown ? "\n" : "  ", to);
    }
}

/* Prints the table's header. The headers of number columns are right-aligned, without regard to decimals. */
static void print_header(const struct table *table, FILE *to)
{
    for (int c = table->first; c < table->shown; c++) {
        struct column column = table->column[c];
        column.decimals = 0;
        print_cell(&column, table->name[c], c + 1 == table->shown, to);
        fputs(c + 1 == table->shown ? "\n" : "  ", to);
    }
    for (int c = table->first; c < table->shown; c++) {
        for (int i = 0; i < table->column[c].width; i++)
            fputc('-', to);
        fputs(c + 1 == table->shown ? "\n" : "  ", to);
    }
}

static void widen(struct column *column, int width)
{
    if (width > column->width)
        column->width = width < WIDTH_MAX ? width : WIDTH_MAX;
}

/* Copies the statement's current row into one string per column, which the caller frees. Returns the total
 * number of bytes. */
static size_t copy_row(const struct table *table, char **cell)
{
    size_t sum = 0, bytes;
    for (int c = 0; c < table->columns; c++) {
        const char *text = text_of(table->statement, c, &bytes);
        cell[c] = ct_printable(text, bytes);
        sum += cell[c] ? strlen(cell[c]) : 0;
    }
    return sum;
}

/* Determines each column's width and kind from the rows that have been read. */
static void measure(struct table *table)
{
    for (int c = 0; c < table->columns; c++) {
        struct column *column = &table->column[c];
        for (int r = 0; r < table->rows; r++) {
            const char *cell = table->cell[(size_t)r * (size_t)table->columns + (size_t)c];
            if (!cell || !*cell)
                continue;
            column->words |= !looks_like_number(cell);
            if (decimals_of(cell) > column->decimals)
                column->decimals = decimals_of(cell);
        }
        column->numbers = table->rows > 0 && !column->words;
        if (!column->numbers || column->decimals > DECIMALS_MAX)
            column->decimals = 0;
        widen(column, ct_text_width(table->name[c]));
        for (int r = 0; r < table->rows; r++) {
            const char *cell = table->cell[(size_t)r * (size_t)table->columns + (size_t)c];
            if (!cell)
                continue;
            const int more = column->decimals - decimals_of(cell);
            widen(column,
                  ct_text_width(cell) + (column->decimals > 0 && *cell ? more + !strchr(cell, '.') : 0));
        }
    }
}

/* Fits the table into `width` characters. Truncates the widest columns first, and then drops columns at the
 * end. */
static void fit(struct table *table, int width)
{
    int sum = -2;
    table->shown = table->columns;
    for (int c = table->first; c < table->columns; c++)
        sum += table->column[c].width + 2;
    while (width > 0 && sum > width) {
        struct column *widest = NULL;
        for (int c = table->first; c < table->shown; c++) {
            struct column *column = &table->column[c];
            if (!column->numbers && column->width > (c == table->first ? FIRST_MIN : TEXT_MIN) &&
                (!widest || column->width > widest->width))
                widest = column;
        }
        if (widest) {
            widest->width--;
            widest->cut = true;
            sum--;
        } else if (table->shown > table->first + 1) {
            sum -= table->column[--table->shown].width + 2;
        } else {
            table->column[table->first].width = width;
            table->column[table->first].cut = true;
            break;
        }
    }
    /* A column may have been narrowed to keep another one that was dropped in the end. Widen such a column
     * again. */
    for (int c = table->first; width > 0 && c < table->shown && sum < width; c++) {
        if (table->column[c].cut) {
            table->column[c].width += width - sum;
            break;
        }
    }
}

static void name_left_out(const struct table *table, FILE *to)
{
    if (table->shown == table->columns)
        return;
    fprintf(to, "(no room for");
    for (int c = table->shown; c < table->columns; c++)
        fprintf(to, "%s %s", c > table->shown ? "," : "", table->name[c]);
    fputs(")\n", to);
}

/* Returns the table's first column. A column named paragraph contains text for human readers, and the columns
 * before it are for programs. The columns after it form the table, above which the first row's text is
 * printed. */
static int first_of(const struct table *table)
{
    for (int c = 0; c < table->columns; c++) {
        if (strcmp(name_of(table->statement, c), "paragraph") == 0)
            return c + 1;
    }
    return 0;
}

static int read_rows(struct table *table)
{
    int rc = SQLITE_ROW;
    size_t bytes = 0;
    while (table->rows < ROWS_MEASURED && bytes < BYTES_MEASURED && (rc = step(table)) == SQLITE_ROW)
        bytes += copy_row(table, table->cell + (size_t)table->rows++ * (size_t)table->columns);
    measure(table);
    table->first = first_of(table);
    return rc;
}

/* Prints a string, breaking lines at spaces. */
static void print_paragraph(const char *text, int width, FILE *to)
{
    const int most = width > 0 && width < 100 ? width : 100;
    while (*text) {
        int bytes = ct_text_bytes(text, most);
        if (text[bytes]) {
            int space = bytes;
            while (space > 0 && text[space] != ' ')
                space--;
            bytes = space > 0 ? space : bytes;
        }
        fprintf(to, "%.*s\n", bytes, text);
        text += bytes;
        text += strspn(text, " ");
    }
}

/* Prints all rows, beginning with those that have been measured. */
static int print_each(struct table *table, int rc, void (*print)(const struct table *, char **cell, FILE *),
                      FILE *to)
{
    for (int r = 0; r < table->rows || (rc == SQLITE_ROW && (rc = step(table)) == SQLITE_ROW); r++) {
        char **cell = table->cell;
        if (r < table->rows)
            cell += (size_t)r * (size_t)table->columns;
        else
            copy_row(table, cell);
        print(table, cell, to);
        for (int c = 0; c < table->columns; c++)
            free(cell[c]);
    }
    return rc;
}

static void print_paragraph_of(const struct table *table, char **cell, FILE *to)
{
    const char *text = cell[table->first - 1];
    if (text && *text)
        print_paragraph(text, table->width, to);
}

static bool is_only_text(const struct table *table)
{
    return table->first > 0 && table->first == table->columns;
}

/* If there is a paragraph, prints the first row's text and an empty line. */
static void print_above(const struct table *table, FILE *to)
{
    if (table->first > 0 && table->rows > 0) {
        print_paragraph_of(table, table->cell, to);
        fputc('\n', to);
    }
}

static int print_text(struct table *table, FILE *to)
{
    const int rc = read_rows(table);
    if (is_only_text(table))
        return print_each(table, rc, print_paragraph_of, to);
    print_above(table, to);
    fit(table, table->width);
    if (table->columns > 0)
        print_header(table, to);
    const int ended = print_each(table, rc, print_row, to);
    name_left_out(table, to);
    return ended;
}

static void print_markdown_row(const struct table *table, char **cell, FILE *to)
{
    for (int c = table->first; c < table->columns; c++) {
        fputs("| ", to);
        for (const char *at = cell[c] ? cell[c] : ""; *at; at++) {
            if (*at == '|' || *at == '\\' || *at == '<' || *at == '`' || *at == '*' || *at == '_')
                fputc('\\', to);
            fputc(*at, to);
        }
        fputc(' ', to);
    }
    fputs("|\n", to);
}

static int print_markdown(struct table *table, FILE *to)
{
    const int rc = read_rows(table);
    if (is_only_text(table))
        return print_each(table, rc, print_paragraph_of, to);
    print_above(table, to);
    print_markdown_row(table, table->name, to);
    for (int c = table->first; c < table->columns; c++)
        fputs(table->column[c].numbers ? "| ---: " : "| --- ", to);
    fputs("|\n", to);
    return print_each(table, rc, print_markdown_row, to);
}

/* ---- csv and json, for programs ---- */

static int print_csv(struct table *table, FILE *to)
{
    for (int c = 0; c < table->columns; c++) {
        const char *name = name_of(table->statement, c);
        ct_print_csv_field(name, strlen(name), to);
        fputc(c + 1 == table->columns ? '\n' : ',', to);
    }
    int rc;
    while ((rc = step(table)) == SQLITE_ROW) {
        for (int c = 0; c < table->columns; c++) {
            size_t bytes;
            const char *text = text_of(table->statement, c, &bytes);
            ct_print_csv_field(text, bytes, to);
            fputc(c + 1 == table->columns ? '\n' : ',', to);
        }
    }
    return rc;
}

static void print_json_value(sqlite3_stmt *statement, int column, FILE *to)
{
    size_t bytes;
    const int type = sqlite3_column_type(statement, column);
    const char *text = text_of(statement, column, &bytes);
    if (type == SQLITE_NULL)
        fputs("null", to);
    else if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        ct_print_json_string(text, bytes, to);
    else if (strstr(text, "Inf"))
        fputs(*text == '-' ? "-9e999" : "9e999", to);
    else
        fputs(text, to);
}

int ct_print_json_members(sqlite3_stmt *row, const char *before, FILE *to)
{
    int members = 0;
    for (int c = 0; c < sqlite3_column_count(row); c++) {
        if (sqlite3_column_type(row, c) == SQLITE_NULL)
            continue;
        fprintf(to, "%s\"%s\":", members++ ? "," : before, name_of(row, c));
        print_json_value(row, c, to);
    }
    return members;
}

void ct_print_json_pairs(sqlite3_stmt *row, FILE *to)
{
    const char *before = "{";
    for (int c = 0; c + 1 < sqlite3_column_count(row); c += 2) {
        size_t bytes;
        const char *name = text_of(row, c, &bytes);
        if (sqlite3_column_type(row, c) == SQLITE_NULL)
            continue;
        fputs(before, to);
        before = ",";
        ct_print_json_string(name, bytes, to);
        fputc(':', to);
        print_json_value(row, c + 1, to);
    }
    fputs(before[0] == '{' ? "{}" : "}", to);
}

/* Prints an array of objects, one per line. */
static int print_json(struct table *table, FILE *to)
{
    const char *before = "[\n";
    int rc;
    while ((rc = step(table)) == SQLITE_ROW) {
        fputs(before, to);
        before = ",\n";
        for (int c = 0; c < table->columns; c++) {
            fputs(c == 0 ? "{" : ",", to);
            const char *name = name_of(table->statement, c);
            ct_print_json_string(name, strlen(name), to);
            fputc(':', to);
            print_json_value(table->statement, c, to);
        }
        fputc('}', to);
    }
    fputs(before[0] == '[' ? "[]\n" : "\n]\n", to);
    return rc;
}

int ct_print_rows(sqlite3_stmt *statement, enum ct_format format, int width, FILE *to,
                  struct ct_printed *printed)
{
    static int (*const printers[CT_FORMAT_COUNT])(struct table *, FILE *) = { print_text, print_csv,
                                                                              print_json, print_markdown };
    const int columns = sqlite3_column_count(statement);
    struct table table = {
        .statement = statement,
        .columns = columns,
        .width = width,
        .printed = printed ? *printed : (struct ct_printed){ 0 },
        .column = calloc((size_t)columns + 1, sizeof(*table.column)),
        .name = calloc((size_t)columns + 1, sizeof(*table.name)),
        .cell = calloc((size_t)columns * ROWS_MEASURED + 1, sizeof(*table.cell)),
    };
    bool good = table.column && table.name && table.cell;
    for (int c = 0; good && c < columns; c++) {
        const char *name = name_of(statement, c);
        good = (table.name[c] = ct_printable(name, strlen(name))) != NULL;
    }
    const int rc = good ? printers[format](&table, to) : SQLITE_NOMEM;
    if (printed)
        printed->rows = table.printed.rows;
    for (int c = 0; table.name && c < columns; c++)
        free(table.name[c]);
    free(table.name);
    free(table.column);
    free(table.cell);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
