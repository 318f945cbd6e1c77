// SPDX-License-Identifier: BSD-3-Clause
/* An upper bound of what rings or chains can carry together, where cuts are too wide. See network.h.
 *
 * Give every link any length, none below 0. A channel that carries b uses at least b · (length of the shortest ring) of the sum of
 * budget · length over all links; so all channels together carry no more than that sum divided by that length, however they are laid. Cuts
 * are the lengths 0 and 1; others see what cuts do not: that a way between CPUs passes no third one, or that every ring needs more
 * than its share of some links.
 *
 * Good lengths come from linear programming: the simplex method with a row for each link and a column for each ring, of which only those
 * are written that are shortest by the lengths so far. The bound holds for whatever lengths come out; so nothing here need be trusted but
 * the shortest ring, which is found by sets of GPUs (Held and Karp), and hence only for few GPUs. */
#include <math.h>

#include "base/alloc.h"
#include "topo/network.h"

enum { MOST_GPUS = 10, MOST_ROWS = 192, MOST_STEPS = 500 };

struct prices {
    const struct hoop_net *net;
    enum hoop_topo_shape shape;
    enum hoop_topo_hop worst;
    int rows, row[HOOP_NET_EDGES]; /* of an edge; -1: no way needs it */
    double budget[MOST_ROWS], price[MOST_ROWS];
    /* The simplex method: what each column of the basis carries, whether it is a ring (else what a row has left), the inverse. */
    double carried[MOST_ROWS], inverse[MOST_ROWS][MOST_ROWS], column[MOST_ROWS];
    bool is_ring[MOST_ROWS];
    /* The shortest way from the beginning through a set of GPUs to the last one, and the one before that. */
    double shortest[1 << MOST_GPUS][MOST_GPUS];
    int before[1 << MOST_GPUS][MOST_GPUS];
    int order[MOST_GPUS];
};

/* Edges that the way from a to b takes; a chain uses the way back, too. */
static int edges_of(const struct prices *prices, int a, int b, int edge[2 * HOOP_NET_HOPS])
{
    const struct hoop_net_path *path = &prices->net->path[a][b], *back = &prices->net->path[b][a];
    int count = 0;

    for (int i = 0; i < path->edges; i++)
        edge[count++] = path->edge[i];
    for (int i = 0; prices->shape == HOOP_TOPO_CHAIN && i < back->edges; i++)
        edge[count++] = back->edge[i];
    return count;
}

static bool allowed(const struct prices *prices, int a, int b)
{
    const struct hoop_net_path *path = &prices->net->path[a][b];

    return a != b && path->edges > 0 && path->hop <= prices->worst;
}

/* A row for every edge that some way needs, all of it left. False: too many. */
static bool find_rows(struct prices *prices)
{
    const int gpus = prices->net->gpus;
    int edge[2 * HOOP_NET_HOPS];

    for (int i = 0; i < HOOP_NET_EDGES; i++)
        prices->row[i] = -1;
    for (int pair = 0; pair < gpus * gpus; pair++) {
        const int a = pair / gpus, b = pair % gpus, edges = allowed(prices, a, b) ? edges_of(prices, a, b, edge) : 0;

        for (int i = 0; i < edges; i++) {
            const int row = prices->rows;

            if (prices->row[edge[i]] >= 0)
                continue;
            if (row == MOST_ROWS)
                return false;
            prices->row[edge[i]] = prices->rows++;
            prices->budget[row] = prices->net->edge[edge[i]].budget;
            prices->carried[row] =
                prices->budget[row] + 0.001 * (row + 1); /* no two alike, or it could go in circles */
            prices->inverse[row][row] = 1;
        }
    }
    return true;
}

/* The length of the way from a to b; infinite: it is none. */
static double length_of(const struct prices *prices, int a, int b)
{
    int edge[2 * HOOP_NET_HOPS];
    const int edges = edges_of(prices, a, b, edge);
    double length = allowed(prices, a, b) ? 0 : INFINITY;

    for (int i = 0; i < edges && isfinite(length); i++)
        length += prices->price[prices->row[edge[i]]];
    return length;
}

/* The shortest ring or chain into order; returns its length. */
static double shortest(struct prices *prices)
{
    const int gpus = prices->net->gpus, all = (1 << gpus) - 1;
    double length[MOST_GPUS][MOST_GPUS], best = INFINITY;

    for (int set = 0; set <= all; set++)
        for (int last = 0; last < gpus; last++)
            prices->shortest[set][last] =
                set == 1 << last && (last == 0 || prices->shape == HOOP_TOPO_CHAIN) ? 0 : INFINITY;
    for (int pair = 0; pair < gpus * gpus; pair++)
        length[pair / gpus][pair % gpus] = length_of(prices, pair / gpus, pair % gpus);
    for (int set = 1; set < all; set++)
        for (int last = 0; last < gpus; last++)
            for (int next = 0; isfinite(prices->shortest[set][last]) && next < gpus; next++) {
                const int more = set | 1 << next;
                const double way = prices->shortest[set][last] + length[last][next];

                if (more == set || way >= prices->shortest[more][next])
                    continue;
                prices->shortest[more][next] = way;
                prices->before[more][next] = last;
            }
    for (int last = 0; last < gpus; last++) {
        const double way = prices->shortest[all][last] + (prices->shape == HOOP_TOPO_RING ? length[last][0] : 0);

        if (way >= best)
            continue;
        best = way;
        prices->order[gpus - 1] = last;
    }
    for (int i = gpus - 1, set = all; i > 0 && isfinite(best); set &= ~(1 << prices->order[i]), i--)
        prices->order[i - 1] = prices->before[set][prices->order[i]];
    return best;
}

/* How often the ring in order uses each row. */
static void write_column(struct prices *prices)
{
    const int gpus = prices->net->gpus, hops = gpus - (prices->shape == HOOP_TOPO_CHAIN);
    int edge[2 * HOOP_NET_HOPS];

    for (int row = 0; row < prices->rows; row++)
        prices->column[row] = 0;
    for (int i = 0; i < hops; i++) {
        const int edges = edges_of(prices, prices->order[i], prices->order[(i + 1) % gpus], edge);

        for (int k = 0; k < edges; k++)
            prices->column[prices->row[edge[k]]]++;
    }
}

/* Take the column into the basis for the one that it uses up first. False: none is used up. */
static bool exchange(struct prices *prices, bool is_ring)
{
    double needs[MOST_ROWS], least = INFINITY;
    int out = -1;

    for (int i = 0; i < prices->rows; i++) {
        needs[i] = 0;
        for (int k = 0; k < prices->rows; k++)
            needs[i] += prices->inverse[i][k] * prices->column[k];
        if (needs[i] <= 1e-9 || prices->carried[i] / needs[i] >= least)
            continue;
        least = prices->carried[i] / needs[i];
        out = i;
    }
    if (out < 0)
        return false;
    for (int i = 0; i < prices->rows; i++) {
        const double part = i == out ? 0 : needs[i] / needs[out];

        for (int k = 0; k < prices->rows && part != 0; k++)
            prices->inverse[i][k] -= part * prices->inverse[out][k];
        prices->carried[i] -= part * prices->carried[out];
    }
    for (int k = 0; k < prices->rows; k++)
        prices->inverse[out][k] /= needs[out];
    prices->carried[out] /= needs[out];
    prices->is_ring[out] = is_ring;
    return true;
}

/* Lengths by what the basis would gain from more of each row. Returns the row that should rather be left unused, -1: none. */
static int find_prices(struct prices *prices)
{
    int lowest = -1;

    for (int k = 0; k < prices->rows; k++) {
        double price = 0;

        for (int i = 0; i < prices->rows; i++)
            price += prices->is_ring[i] ? prices->inverse[i][k] : 0;
        if (price < -1e-9 && (lowest < 0 || price < prices->price[lowest]))
            lowest = k;
        prices->price[k] = price;
    }
    for (int k = 0; k < prices->rows; k++)
        if (prices->price[k] < 0 && k != lowest)
            prices->price[k] = 0;
    return lowest;
}

/* One step of the simplex method. False: there is no better one, and *bound is the least. */
static bool improve(struct prices *prices, double *bound)
{
    const int unused = find_prices(prices);
    double room = 0;

    if (unused >= 0) {
        for (int row = 0; row < prices->rows; row++)
            prices->column[row] = row == unused;
        return exchange(prices, false);
    }
    const double length = shortest(prices);
    for (int row = 0; row < prices->rows; row++)
        room += prices->budget[row] * prices->price[row];
    if (length > 0 && room / length < *bound)
        *bound = room / length;
    if (length > 1 - 1e-9)
        return false;
    write_column(prices);
    return exchange(prices, true);
}

long hoop_net_price_bound(const struct hoop_net *net, enum hoop_topo_shape shape, enum hoop_topo_hop worst, long bound)
{
    struct prices *prices = net->gpus <= MOST_GPUS ? hoop_calloc(1, sizeof *prices) : NULL;
    double least = (double)bound;

    if (prices == NULL)
        return bound;
    prices->net = net;
    prices->shape = shape;
    prices->worst = worst;
    for (int step = 0; step < MOST_STEPS && (step > 0 || find_rows(prices)) && improve(prices, &least); step++)
        ;
    hoop_free(prices);
    return (long)(least + 0.01); /* whole MB/s: channels have such; what rounding has taken is far less */
}
