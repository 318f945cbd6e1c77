# SPDX-License-Identifier: BSD-3-Clause
# The tables of bench-peers and bench-network, and all figures as JSON.
#
# Input: targets, then lines "layout|ranks|name|kind|round|bytes|microseconds|how|call|trips" in the order measured; the columns
# come in the order of their first line. kind: hoop, or what it is compared with as (peers: limit, debian, newest; network: gloo, bidir …). trips: nanoseconds of a word's way there and back
# before and after. Virtual processors share caches at one time and not at another, which changes all times by a factor; so
# what was measured with near and with distant processors goes into tables of its own, and what saw both is left out.
# Variables: json (file to write), about (text of JSON members).
BEGIN { FS = "|" }

FILENAME ~ /targets$/ {
    if ($0 !~ /^#/ && split($0, t, " ") == 7) {
        targets++
        target_call[targets] = t[1]
        for (i = 1; i <= 6; i++)
            target[targets, i] = t[i + 1]
    }
    next
}

{
    line[++lines] = $0
    if (split($10, trip, ",") == 2)
        for (i = 1; i <= 2; i++)
            nearest = nearest == 0 || trip[i] + 0 < nearest ? trip[i] + 0 : nearest
}

# What the trips say of the processors; "": nothing.
function state(trips,    trip, first, second) {
    if (split(trips, trip, ",") != 2)
        return ""
    first = trip[1] < 2 * nearest
    second = trip[2] < 2 * nearest
    return first != second ? "mixed" : first ? "near" : "distant"
}

function take(    how_near) {
    how_near = state($10)
    if (how_near == "mixed") {
        mixed++
        return
    }
    if (how_near != "")
        $1 = $1 ", processors " how_near
    if (!($1 in ranks)) {
        layouts[++layout_count] = $1
        ranks[$1] = $2
        call[$1] = $9
    }
    if (!($3 in kind)) {
        names[++name_count] = $3
        kind[$3] = $4
    }
    if (!(($1, $6) in seen)) {
        seen[$1, $6] = 1
        sizes[$1, ++size_count[$1]] = $6
    }
    ran[$1, $3] = 1
    last_round = $5 > last_round ? $5 + 0 : last_round
    if ($4 == "limit") {
        note_way()
        return
    }
    times[$1, $3, $6] = times[$1, $3, $6] " " $7
    time_in[$1, $3, $6, $5] = $7
    if ($8 != "")
        how[$1, $3, $6] = $8
}

# The bare exchange has a row for each way that it tried.
function note_way() {
    if (!(($1, $3, $6, $8) in way_times))
        ways[$1, $3, $6] = ways[$1, $3, $6] " " ($8 == "" ? "-" : $8)
    way_times[$1, $3, $6, $8] = way_times[$1, $3, $6, $8] " " $7
    way_in[$1, $3, $6, $8, $5] = $7
}

# Of its ways that with the least median counts: one way, in all rounds.
function choose_ways(    at, way, n, i, t, best, round) {
    for (at in ways) {
        n = split(ways[at], way, " ")
        best = ""
        for (i = 1; i <= n; i++) {
            sub(/^-$/, "", way[i])
            t = median(way_times[at, way[i]])
            if (best == "" || t < best) {
                best = t
                how[at] = way[i]
            }
        }
        times[at] = way_times[at, how[at]]
        for (round = 1; round <= last_round; round++)
            if ((at, how[at], round) in way_in)
                time_in[at, round] = way_in[at, how[at], round]
    }
}

function median(list,    v, n, i, j, x) {
    n = split(list, v, " ")
    for (i = 2; i <= n; i++) {
        x = v[i] + 0
        for (j = i - 1; j > 0 && v[j] + 0 > x; j--)
            v[j + 1] = v[j]
        v[j + 1] = x
    }
    return n == 0 ? 0 : n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
}

function time_of(layout, name, bytes) {
    return median(times[layout, name, bytes])
}

# The least time of that kind, 0: none; sets best_name.
function best_of(layout, sort, bytes,    i, t, best) {
    best = 0
    best_name = ""
    for (i = 1; i <= name_count; i++) {
        if (kind[names[i]] != sort)
            continue
        t = time_of(layout, names[i], bytes)
        if (t > 0 && (best == 0 || t < best)) {
            best = t
            best_name = names[i]
        }
    }
    return best
}

function ratio(layout, name, sort, bytes,    own, other) {
    own = time_of(layout, name, bytes)
    other = best_of(layout, sort, bytes)
    return own > 0 && other > 0 ? other / own : 0
}

function size_text(bytes) {
    return bytes >= 1048576 ? bytes / 1048576 "M" : bytes >= 1024 ? bytes / 1024 "K" : bytes
}

function time_text(t) {
    return t == 0 ? "-" : t < 100 ? sprintf("%.2f", t) : t < 1000 ? sprintf("%.1f", t) : sprintf("%.0f", t)
}

function ratio_text(r) {
    return r == 0 ? "-" : r < 10 ? sprintf("%.2f", r) : sprintf("%.0f", r)
}

# The least and the largest ratio of single rounds, as "LEAST to LARGEST"; "": fewer than two rounds have both.
function spread(layout, name, sort, bytes,    round, i, own, other, r, least, largest, n) {
    for (round = 1; round <= last_round; round++) {
        own = time_in[layout, name, bytes, round]
        other = 0
        for (i = 1; i <= name_count; i++)
            if (kind[names[i]] == sort && (layout, names[i], bytes, round) in time_in)
                if (other == 0 || time_in[layout, names[i], bytes, round] < other)
                    other = time_in[layout, names[i], bytes, round]
        if (own <= 0 || other <= 0)
            continue
        r = other / own
        least = n == 0 || r < least ? r : least
        largest = r > largest ? r : largest
        n++
    }
    return n > 1 ? ratio_text(least) " to " ratio_text(largest) : ""
}

# What the figures say about a target that was missed: how far, what the bare loop reaches against the same peers (if it misses as well, no
# library could do it here), what hoop reaches with its own memory, by what it was done, and how far rounds differ.
function reason(layout, name, sort, bytes, least, reached,    text, other, bare, ways) {
    text = ratio_text(reached)
    other = best_of(layout, sort, bytes)
    bare = best_of(layout, "limit", bytes)
    if (sort != "limit" && bare > 0)
        text = text "; limit " (other / bare < least ? "misses, too: " : "reaches ") ratio_text(other / bare)
    if (name == "malloc" && time_of(layout, "hoop", bytes) > 0)
        text = text "; hoop_mem_alloc " ratio_text(ratio(layout, "hoop", sort, bytes))
    if (sort == "limit") {
        ways = how[layout, name, bytes] " against " how[layout, best_name, bytes]
        text = text (ways == " against " ? "" : "; " ways)
    }
    if (spread(layout, name, sort, bytes) != "")
        text = text "; rounds " spread(layout, name, sort, bytes)
    return text
}

# The targets of a row as text, counting them; json_targets receives them as JSON.
function verdicts(layout, bytes,    i, r, text, met, why) {
    json_targets = ""
    for (i = 1; i <= targets; i++) {
        if ((target_call[i] != "any" && target_call[i] != call[layout]) || target[i, 1] != "any" && target[i, 1] != ranks[layout] || bytes < target[i, 2] + 0 || bytes > target[i, 3] + 0)
            continue
        r = ratio(layout, target[i, 4], target[i, 5], bytes)
        if (r == 0)
            continue
        met = r >= target[i, 6] + 0
        met ? good++ : bad++
        why = met ? "" : reason(layout, target[i, 4], target[i, 5], bytes, target[i, 6] + 0, r)
        text = text (text == "" ? "" : ", ") target[i, 4] "/" target[i, 5] " " target[i, 6] (met ? " ok" : " MISSED (" why ")")
        json_targets = json_targets (json_targets == "" ? "" : ", ") sprintf("{\"buffers\": \"%s\", \"against\": \"%s\", " \
            "\"least\": %s, \"ratio\": %.4g, \"met\": %s, \"reason\": \"%s\"}", target[i, 4], target[i, 5], target[i, 6], r, met ? "true" : "false", why)
    }
    return text
}

# The ratios of the table: what is divided by what, in the order of the kinds' first lines. Ordinary memory has no limit of its own.
function ratio_columns(layout,    i, n, k, seen) {
    n = 0
    for (i = 1; i <= name_count; i++) {
        k = kind[names[i]]
        if (k == "hoop" || k in seen || !((layout, names[i]) in ran))
            continue
        seen[k] = 1
        columns[++n] = "hoop " k
        if (k != "limit" && (layout, "malloc") in ran)
            columns[++n] = "malloc " k
    }
    return n
}

function json_row(layout, bytes,    i, n, text, list, member) {
    text = sprintf("    {\"layout\": \"%s\", \"call\": \"%s\", \"ranks\": %d, \"bytes\": %d, \"us\": {", layout, call[layout], ranks[layout], bytes)
    n = 0
    for (i = 1; i <= name_count; i++) {
        if (!((layout, names[i], bytes) in times) || times[layout, names[i], bytes] == "")
            continue
        list = substr(times[layout, names[i], bytes], 2)
        gsub(/ /, ", ", list)
        member = sprintf("\"%s\": {\"median\": %.6g, \"rounds\": [%s], \"how\": \"%s\"}", names[i],
            time_of(layout, names[i], bytes), list, how[layout, names[i], bytes])
        text = text (n++ ? ", " : "") member
    }
    return text "}, \"targets\": [" json_targets "]}"
}

function table(layout,    i, c, n, s, bytes, line, parts, text) {
    n = ratio_columns(layout)
    printf "\n%s: time of a call in microseconds (median of the rounds' medians), and others' time / hoop's\n", layout
    line = sprintf("%6s", "size")
    for (i = 1; i <= name_count; i++)
        if ((layout, names[i]) in ran)
            line = line sprintf(" %10s", names[i])
    for (c = 1; c <= n; c++) {
        split(columns[c], parts, " ")
        line = line sprintf(" %13s", parts[2] "/" parts[1])
    }
    print line "  targets"
    for (s = 1; s <= size_count[layout]; s++) {
        bytes = sizes[layout, s]
        line = sprintf("%6s", size_text(bytes))
        for (i = 1; i <= name_count; i++)
            if ((layout, names[i]) in ran)
                line = line sprintf(" %10s", time_text(time_of(layout, names[i], bytes)))
        for (c = 1; c <= n; c++) {
            split(columns[c], parts, " ")
            line = line sprintf(" %13s", ratio_text(ratio(layout, parts[1], parts[2], bytes)))
        }
        text = verdicts(layout, bytes)
        print line "  " text
        json_rows = json_rows (json_rows == "" ? "" : ",\n") json_row(layout, bytes)
    }
}

END {
    OFS = "|"
    for (l = 1; l <= lines; l++) {
        $0 = line[l]
        take()
    }
    choose_ways()
    for (l = 1; l <= layout_count; l++)
        table(layouts[l])
    if (mixed > 0)
        printf "\n%d measurements left out: the processors came near or went apart meanwhile\n", mixed
    printf "\ntargets: %d met, %d missed\n", good, bad
    if (bad > 0)
        print "missed: the ratio reached; what limit, the bare exchange, reaches against the same peers; the ratios of single rounds"
    if (json != "")
        printf "{\n%s,\n  \"rows\": [\n%s\n  ]\n}\n", about, json_rows >json
}
