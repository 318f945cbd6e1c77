// SPDX-License-Identifier: BSD-3-Clause
#include "plan/lines.h"

#include <string.h>

bool hoop_line_next(struct hoop_lines *lines, struct hoop_word *line)
{
    if (lines->at == lines->end)
        return false;
    const char *end = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    const char *stop = end ? end : lines->end, *remark;

    line->text = lines->at;
    remark = memchr(lines->at, '#', (size_t)(stop - lines->at));
    line->length = (size_t)((remark ? remark : stop) - lines->at);
    lines->at = end ? end + 1 : lines->end;
    lines->line++;
    return true;
}

struct hoop_word hoop_word_next(struct hoop_word *line)
{
    struct hoop_word word;

    while (line->length > 0 && (*line->text == ' ' || *line->text == '\t' || *line->text == '\r')) {
        line->text++;
        line->length--;
    }
    word = (struct hoop_word){line->text, 0};
    while (word.length < line->length && line->text[word.length] != ' ' && line->text[word.length] != '\t' &&
           line->text[word.length] != '\r')
        word.length++;
    line->text += word.length;
    line->length -= word.length;
    return word;
}

bool hoop_word_is(struct hoop_word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

const char *hoop_word_shown(struct hoop_word word, char text[33])
{
    size_t i = 0;

    for (; i < word.length && i < 32; i++)
        text[i] = word.text[i] >= ' ' && word.text[i] < 0x7f ? word.text[i] : '?';
    text[i] = 0;
    return text;
}

bool hoop_word_whole(struct hoop_word word, uint64_t most, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (word.text[i] < '0' || word.text[i] > '9')
            return false;
        const uint64_t digit = (uint64_t)(word.text[i] - '0');
        if (*value > most / 10 || *value * 10 > most - digit)
            return false;
        *value = *value * 10 + digit;
    }
    return word.length > 0;
}
