/* cli_view_diff.c - the differences between two views, for a page that shows them side by side. */
#include "cli_diff.h"
#include "cli_view_page.h"

typedef struct place {
    const onx_node *node;
    uint32_t scope, box;
} place;

/* The boxes of a model's nodes. */
typedef struct places {
    place *list;
    uint32_t count, room;
    cli_table table;
} places;

typedef struct listing {
    cli_json *json;
    places side[2];
} listing;

static uint32_t hash_of(const places *p, const onx_node *node)
{
    return cli_table_hash(&p->table, onx_str_make((const char *)&node, sizeof node), onx_str_of(""));
}

static bool collect(places *p, const cli_view *view)
{
    p->table.cx = view->call->cx;
    for (uint32_t i = 0; i < view->scope_count; i++)
        for (uint32_t k = 0; k < view->scope[i]->node_count; k++) {
            const view_scope *s = view->scope[i];
            if (!CLI_GROW(p->list, p->count, p->room) || !cli_table_add(&p->table, hash_of(p, s->node[k]), p->count))
                return false;
            p->list[p->count++] = (place){ s->node[k], i, s->first_node + k };
        }
    return true;
}

static void put_place(cli_json *json, const places *p, const onx_node *node, const char *scope, const char *box)
{
    int64_t at = -1;
    CLI_TABLE_EACH (&p->table, hash_of(p, node), i)
        if (p->list[i].node == node)
            at = i;
    cli_json_int(json, scope, at < 0 ? -1 : (int64_t)p->list[at].scope);
    cli_json_int(json, box, at < 0 ? -1 : (int64_t)p->list[at].box);
}

static void put_difference(const cli_diff *d, char what, onx_str where, onx_str name, onx_str a, onx_str b)
{
    const listing *l = d->user;
    cli_json_open(l->json, NULL, '{');
    cli_json_cstr(l->json, "what", what == '-' ? "removed" : what == '+' ? "added" : "changed");
    cli_json_text(l->json, "where", where);
    cli_json_text(l->json, "name", name);
    cli_json_text(l->json, "a", a);
    cli_json_text(l->json, "b", b);
    put_place(l->json, &l->side[0], d->node[0], "a_scope", "a_box");
    put_place(l->json, &l->side[1], d->node[1], "b_scope", "b_box");
    cli_json_close(l->json, '}');
}

void cli_view_diff(cli_json *json, cli_view views[2])
{
    listing l = { .json = json };
    cli_diff d = { .call = views[0].call, .a = views[0].doc, .b = views[1].doc, .said = put_difference, .user = &l };
    cli_json_open(json, "differences", '[');
    const bool enough = collect(&l.side[0], &views[0]) && collect(&l.side[1], &views[1]);
    if (enough)
        cli_diff_model(&d, onx_doc_model(d.a), onx_doc_model(d.b));
    cli_json_close(json, ']');
    cli_progress_end();
    views[0].scarce = views[0].scarce || !enough || d.failure == ONX_E_MEMORY;
    for (int i = 0; i < 2; i++) {
        free(l.side[i].list);
        free(l.side[i].table.slots);
    }
}
