// list.h - intrusive doubly linked lists.
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/mem.h"

// A link, embedded in what is listed. Zeroed memory is an unlinked link. The list's head is a struct ox_list.
struct ox_link {
    struct ox_link *prev, *next; // private
};

struct ox_list {
    struct ox_link head; // private
    size_t count;        // read-only
};

// Makes an empty list.
static inline void ox_list_init(struct ox_list *list)
{
    list->head.prev = list->head.next = &list->head;
    list->count = 0;
}

// True if the link is in some list.
static inline bool ox_link_linked(const struct ox_link *link)
{
    return link->next != NULL;
}

// True if the list has no element.
static inline bool ox_list_empty(const struct ox_list *list)
{
    return list->count == 0;
}

// Puts an unlinked link before another one (the head: at the end).
static inline void ox_list_insert_before(struct ox_list *list, struct ox_link *where, struct ox_link *link)
{
    OX_ASSERT(!ox_link_linked(link));
    link->next = where;
    link->prev = where->prev;
    where->prev->next = link;
    where->prev = link;
    list->count++;
}

// Appends an unlinked link.
static inline void ox_list_push_back(struct ox_list *list, struct ox_link *link)
{
    ox_list_insert_before(list, &list->head, link);
}

// Prepends an unlinked link.
static inline void ox_list_push_front(struct ox_list *list, struct ox_link *link)
{
    ox_list_insert_before(list, list->head.next, link);
}

// Takes a link out of its list; the link may be put into a list again.
static inline void ox_list_remove(struct ox_list *list, struct ox_link *link)
{
    OX_ASSERT(ox_link_linked(link));
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = link->next = NULL;
    list->count--;
}

// The first link, or NULL.
static inline struct ox_link *ox_list_first(struct ox_list *list)
{
    return list->count ? list->head.next : NULL;
}

// The last link, or NULL.
static inline struct ox_link *ox_list_last(struct ox_list *list)
{
    return list->count ? list->head.prev : NULL;
}

// The link after `link`, or NULL.
static inline struct ox_link *ox_list_next(struct ox_list *list, struct ox_link *link)
{
    return link->next == &list->head ? NULL : link->next;
}

// Takes the first link out and returns it, or NULL.
static inline struct ox_link *ox_list_pop_front(struct ox_list *list)
{
    struct ox_link *link = ox_list_first(list);
    if (link)
        ox_list_remove(list, link);
    return link;
}

// Moves all of `from` to the end of `to`; `from` is empty then.
static inline void ox_list_splice(struct ox_list *to, struct ox_list *from)
{
    if (ox_list_empty(from))
        return;
    from->head.next->prev = to->head.prev;
    to->head.prev->next = from->head.next;
    from->head.prev->next = &to->head;
    to->head.prev = from->head.prev;
    to->count += from->count;
    ox_list_init(from);
}

// Walks a list; the current link may be removed (and its owner freed) in the body, others may not.
#define OX_LIST_EACH(list, link)                                                                     \
    for (struct ox_link *link = (list)->head.next, *link##_next = link->next; link != &(list)->head; \
         link = link##_next, link##_next = link->next)

#endif
