// inode.c - pages, dirty sectors, syncs that fail and power cuts of one simulated file.
#include "sim/inode.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

static const uint8_t page_zero[SIM_PAGE_BYTES];

static void page_clean(struct sim_inode *inode, struct sim_page *page)
{
    if (!page->platter)
        return;
    ox_list_remove(&inode->changed, &page->link);
    if (page->platter != page_zero)
        ox_free((void *)(uintptr_t)page->platter);
    page->platter = NULL;
    page->dirty = page->stale = 0;
}

struct sim_inode *sim_inode_new(struct ox_list *list, uint64_t *used)
{
    struct sim_inode *inode = ox_malloc(sizeof(*inode));
    inode->refs = 1;
    inode->used = used;
    ox_list_init(&inode->changed);
    ox_list_push_back(list, &inode->link);
    return inode;
}

struct sim_inode *sim_inode_ref(struct sim_inode *inode)
{
    inode->refs++;
    return inode;
}

void sim_inode_unref(struct ox_list *list, struct sim_inode *inode)
{
    OX_ASSERT(inode->refs > 0);
    if (--inode->refs > 0)
        return;
    for (size_t i = 0; i < inode->page_count; i++) {
        if (inode->pages[i])
            page_clean(inode, inode->pages[i]);
        ox_free(inode->pages[i]);
    }
    *inode->used -= inode->size;
    ox_free(inode->pages);
    ox_list_remove(list, &inode->link);
    ox_free(inode);
}

static struct sim_page *inode_find_page(const struct sim_inode *inode, uint64_t index)
{
    return index < inode->page_count ? inode->pages[index] : NULL;
}

static struct sim_page *inode_get_page(struct sim_inode *inode, uint64_t index)
{
    if (index >= inode->page_count) {
        size_t count = OX_MAX((size_t)index + 1, inode->page_count * 2);
        inode->pages = ox_realloc(inode->pages, count, sizeof(struct sim_page *));
        memset(inode->pages + inode->page_count, 0, (count - inode->page_count) * sizeof(struct sim_page *));
        inode->page_count = count;
    }
    if (!inode->pages[index])
        inode->pages[index] = ox_malloc(sizeof(struct sim_page));
    return inode->pages[index];
}

void sim_inode_read(const struct sim_inode *inode, void *buf, size_t len, uint64_t offset)
{
    OX_ASSERT(offset + len <= inode->size);
    for (uint8_t *to = buf; len > 0;) {
        size_t in_page = (size_t)(offset % SIM_PAGE_BYTES), n = OX_MIN(len, SIM_PAGE_BYTES - in_page);
        const struct sim_page *page = inode_find_page(inode, offset / SIM_PAGE_BYTES);
        memcpy(to, (page ? page->cache : page_zero) + in_page, n);
        to += n;
        offset += n;
        len -= n;
    }
}

static uint8_t page_sectors(size_t from, size_t len)
{
    unsigned first = (unsigned)(from / SIM_SECTOR_BYTES), last = (unsigned)((from + len - 1) / SIM_SECTOR_BYTES);
    return (uint8_t)((0xffu << first) & (0xffu >> (7 - last)));
}

// Before a page's cache changes: keeps what the platter holds. The kernel writes a whole dirty page, so stale sectors are rescued by any write to their page.
static void page_touch(struct sim_inode *inode, struct sim_page *page, uint8_t sectors, bool fresh)
{
    if (!page->platter) {
        page->platter = fresh ? page_zero : ox_memdup(page->cache, SIM_PAGE_BYTES);
        ox_list_push_back(&inode->changed, &page->link);
    }
    page->dirty = (uint8_t)(page->dirty | page->stale | sectors);
    page->stale = 0;
}

static void inode_write_page(struct sim_inode *inode, uint64_t index, const uint8_t *data, size_t from, size_t n)
{
    struct sim_page *page = inode_find_page(inode, index);
    bool zeros = !data || memcmp(data, page_zero, n) == 0, fresh = !page;
    if (fresh && zeros)
        return;
    if (fresh)
        page = inode_get_page(inode, index);
    page_touch(inode, page, page_sectors(from, n), fresh);
    if (zeros)
        memset(page->cache + from, 0, n);
    else
        memcpy(page->cache + from, data, n);
}

void sim_inode_write(struct sim_inode *inode, const void *data, uint64_t offset, uint64_t len)
{
    if (len > 0 && offset + len > inode->size) {
        *inode->used += offset + len - inode->size;
        inode->size = offset + len;
    }
    for (const uint8_t *from = data; len > 0;) {
        size_t in_page = (size_t)(offset % SIM_PAGE_BYTES), n = OX_MIN((size_t)len, SIM_PAGE_BYTES - in_page);
        inode_write_page(inode, offset / SIM_PAGE_BYTES, from, in_page, n);
        from = from ? from + n : NULL;
        offset += n;
        len -= n;
    }
}

void sim_inode_resize(struct sim_inode *inode, uint64_t size)
{
    uint64_t stored = OX_MIN(inode->size, (uint64_t)inode->page_count * SIM_PAGE_BYTES);
    if (size < stored)
        sim_inode_write(inode, NULL, size, stored - size);
    *inode->used += size - inode->size;
    inode->size = size;
}

static void page_copy_sectors(uint8_t *to, const uint8_t *from, uint8_t sectors)
{
    for (unsigned i = 0; i < SIM_PAGE_BYTES / SIM_SECTOR_BYTES; i++) {
        if (sectors >> i & 1)
            memcpy(to + i * SIM_SECTOR_BYTES, from + i * SIM_SECTOR_BYTES, SIM_SECTOR_BYTES);
    }
}

static uint8_t *page_own_platter(struct sim_page *page)
{
    if (page->platter == page_zero)
        page->platter = ox_malloc(SIM_PAGE_BYTES);
    return (uint8_t *)(uintptr_t)page->platter;
}

void sim_inode_sync(struct sim_inode *inode)
{
    OX_LIST_EACH(&inode->changed, link) {
        struct sim_page *page = CONTAINER_OF(link, struct sim_page, link);
        if (!page->stale) {
            page_clean(inode, page);
            continue;
        }
        page_copy_sectors(page_own_platter(page), page->cache, page->dirty);
        page->dirty = 0;
    }
    inode->platter_size = inode->size;
}

void sim_inode_drop(struct sim_inode *inode, bool at_once)
{
    OX_LIST_EACH(&inode->changed, link) {
        struct sim_page *page = CONTAINER_OF(link, struct sim_page, link);
        page->stale = (uint8_t)(page->stale | page->dirty);
        page->dirty = 0;
        if (!at_once)
            continue;
        memcpy(page->cache, page->platter, SIM_PAGE_BYTES);
        page_clean(inode, page);
    }
}

static uint8_t keep_sectors(uint8_t dirty, enum sim_keep keep, struct ox_random *random, uint64_t *first_left)
{
    uint8_t kept = 0;
    if (keep == SIM_KEEP_ALL)
        return dirty;
    if (keep == SIM_KEEP_SOME)
        return (uint8_t)(dirty & ox_random_next(random));
    for (unsigned i = 0; keep == SIM_KEEP_FIRST && i < 8 && *first_left > 0; i++) {
        if (!(dirty >> i & 1))
            continue;
        kept = (uint8_t)(kept | 1u << i);
        --*first_left;
    }
    return kept;
}

static uint64_t inode_dirty_sectors(struct sim_inode *inode)
{
    uint64_t n = 0;
    OX_LIST_EACH(&inode->changed, link)
        n += (uint64_t)__builtin_popcount(CONTAINER_OF(link, struct sim_page, link)->dirty);
    return n;
}

void sim_inode_crash(struct sim_inode *inode, enum sim_keep keep, struct ox_random *random)
{
    uint64_t first_left = ox_random_below(random, inode_dirty_sectors(inode) + 1);
    bool keep_size = keep == SIM_KEEP_ALL || (keep != SIM_KEEP_NONE && ox_random_below(random, 2));
    OX_LIST_EACH(&inode->changed, link) {
        struct sim_page *page = CONTAINER_OF(link, struct sim_page, link);
        uint8_t kept = keep_sectors(page->dirty, keep, random, &first_left);
        page_copy_sectors(page->cache, page->platter, (uint8_t)~kept);
        page_clean(inode, page);
    }
    sim_inode_resize(inode, keep_size ? inode->size : inode->platter_size);
    sim_inode_sync(inode);
    inode->locker = NULL;
}

void sim_inode_flip(struct sim_inode *inode, uint64_t offset, unsigned bit)
{
    struct sim_page *page = inode_get_page(inode, offset / SIM_PAGE_BYTES);
    uint8_t mask = (uint8_t)(1u << (bit & 7));
    page->cache[offset % SIM_PAGE_BYTES] ^= mask;
    if (page->platter)
        page_own_platter(page)[offset % SIM_PAGE_BYTES] ^= mask;
}

void sim_inode_poke(struct sim_inode *inode, const void *data, uint64_t offset, size_t len)
{
    OX_ASSERT(offset + len <= inode->size);
    for (const uint8_t *from = data; len > 0;) {
        size_t in_page = (size_t)(offset % SIM_PAGE_BYTES), n = OX_MIN(len, SIM_PAGE_BYTES - in_page);
        struct sim_page *page = inode_get_page(inode, offset / SIM_PAGE_BYTES);
        memcpy(page->cache + in_page, from, n);
        if (page->platter)
            memcpy(page_own_platter(page) + in_page, from, n);
        from += n;
        offset += n;
        len -= n;
    }
}
