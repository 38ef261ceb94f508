/* layout.h: where the library's tables are in a process, and how they are made: read from the note that the library
 * publishes (base/facts.h). A reader of another version knows no more than what the names say; what it cannot do without
 * it asks for by name. */
#ifndef TA_ANALYSIS_IMAGE_LAYOUT_H
#define TA_ANALYSIS_IMAGE_LAYOUT_H

#include <stdint.h>

#include "analysis/image/target.h"

/* F(member, "name"): always there. T: in a library that can trace. O: may be missing, and is 0 then. */
#define TA__LAYOUT(F, T, O)                                                                                            \
    F(mimalloc, "mimalloc")                                                                                            \
    F(map, "map")                                                                                                      \
    F(map_count, "map.count")                                                                                          \
    F(map_part_bits, "map.part_bits")                                                                                  \
    F(slice_bits, "slice.bits")                                                                                        \
    F(page_bytes, "page.bytes")                                                                                        \
    F(page_thread, "page.thread")                                                                                      \
    F(page_free, "page.free")                                                                                          \
    F(page_local_free, "page.local_free")                                                                              \
    F(page_thread_free, "page.thread_free")                                                                            \
    F(page_used, "page.used")                                                                                          \
    F(page_capacity, "page.capacity")                                                                                  \
    F(page_reserved, "page.reserved")                                                                                  \
    F(page_block_size, "page.block_size")                                                                              \
    F(page_offset, "page.offset")                                                                                      \
    F(page_heap, "page.heap")                                                                                          \
    F(page_interior, "page.interior")                                                                                  \
    F(main_heap, "main_heap")                                                                                          \
    F(arenas, "arenas")                                                                                                \
    F(arenas_count, "arenas.count")                                                                                    \
    F(arenas_most, "arenas.most")                                                                                      \
    F(arena_slices, "arena.slices")                                                                                    \
    F(arena_info_slices, "arena.info_slices")                                                                          \
    F(regions_chunks, "regions.chunks")                                                                                \
    F(regions_chunk, "regions.chunk")                                                                                  \
    F(regions_used, "regions.used")                                                                                    \
    F(region_bytes, "region.bytes")                                                                                    \
    F(region_address, "region.address")                                                                                \
    F(region_size, "region.size")                                                                                      \
    T(gate, "gate")                                                                                                    \
    T(gate_tracing, "gate.tracing")                                                                                    \
    T(gate_sampled, "gate.sampled")                                                                                    \
    T(members, "members")                                                                                              \
    T(members_present, "members.present")                                                                              \
    T(members_used, "members.used")                                                                                    \
    T(members_tids, "members.tids")                                                                                    \
    T(members_most, "members.most")                                                                                    \
    T(member_in_op, "member.in_op")                                                                                    \
    T(counts_flushed, "counts.flushed")                                                                                \
    T(counts_peak, "counts.peak")                                                                                      \
    T(counts_shared, "counts.shared")                                                                                  \
    T(counts_former, "counts.former")                                                                                  \
    T(counts_bytes, "counts.bytes")                                                                                    \
    T(counts_in_blocks, "counts.in_blocks")                                                                            \
    T(counts_in_bytes, "counts.in_bytes")                                                                              \
    T(counts_out_blocks, "counts.out_blocks")                                                                          \
    T(counts_out_bytes, "counts.out_bytes")                                                                            \
    T(former_bytes, "former.bytes")                                                                                    \
    T(former_blocks, "former.blocks")                                                                                  \
    T(former_size, "former.size")                                                                                      \
    T(sample_unit, "sample.unit")                                                                                      \
    T(thread_bytes, "thread.bytes")                                                                                    \
    T(thread_counts, "thread.counts")                                                                                  \
    T(thread_headroom, "thread.headroom")                                                                              \
    T(thread_high, "thread.high")                                                                                      \
    T(thread_domains, "thread.domains")                                                                                \
    T(thread_lost, "thread.lost")                                                                                      \
    T(thread_tid, "thread.tid")                                                                                        \
    T(thread_name, "thread.name")                                                                                      \
    T(control_limit, "control.limit")                                                                                  \
    T(control_epochs_begun, "control.epochs_begun")                                                                    \
    T(control_sample_bytes, "control.sample_bytes")                                                                    \
    T(events_lost, "events.lost")                                                                                      \
    T(events_foreign_frees, "events.foreign_frees")                                                                    \
    T(events_invalid_frees, "events.invalid_frees")                                                                    \
    T(events_snapshots, "events.snapshots")                                                                            \
    T(contexts, "contexts")                                                                                            \
    T(contexts_count, "contexts.count")                                                                                \
    T(leaves, "leaves")                                                                                                \
    T(leaves_count, "leaves.count")                                                                                    \
    T(leaves_first, "leaves.first")                                                                                    \
    T(context_bytes, "context.bytes")                                                                                  \
    T(context_address, "context.address")                                                                              \
    T(context_parent, "context.parent")                                                                                \
    T(context_module, "context.module")                                                                                \
    T(leaf_bytes, "leaf.bytes")                                                                                        \
    T(leaf_context, "leaf.context")                                                                                    \
    T(leaf_domain, "leaf.domain")                                                                                      \
    T(leaf_depth, "leaf.depth")                                                                                        \
    T(leaf_flags, "leaf.flags")                                                                                        \
    T(leaf_cut_short, "leaf.cut_short")                                                                                \
    T(leaf_overflow, "leaf.overflow")                                                                                  \
    T(leaf_untraced, "leaf.untraced")                                                                                  \
    T(leaf_forgotten, "leaf.forgotten")                                                                                \
    T(leaf_freed, "leaf.freed")                                                                                        \
    O(peak_list, "peak.list")                                                                                          \
    O(peak_count, "peak.count")                                                                                        \
    O(peak_current, "peak.current")                                                                                    \
    O(peak_epoch, "peak.epoch")                                                                                        \
    O(peak_users, "peak.users")                                                                                        \
    O(tracked_shards, "tracked.shards")                                                                                \
    O(tracked_shard_count, "tracked.shard_count")                                                                      \
    O(tracked_shard_bytes, "tracked.shard_bytes")                                                                      \
    O(tracked_size, "tracked.size")                                                                                    \
    O(tracked_cells, "tracked.cells")                                                                                  \
    O(tracked_cell_bytes, "tracked.cell_bytes")                                                                        \
    O(tracked_state, "tracked.state")                                                                                  \
    O(tracked_address, "tracked.address")                                                                              \
    O(tracked_bytes, "tracked.bytes")                                                                                  \
    O(tracked_domain, "tracked.domain")                                                                                \
    O(tracked_leaf, "tracked.leaf")                                                                                    \
    O(tracked_used, "tracked.used")                                                                                    \
    T(modules_table, "modules.table")                                                                                  \
    T(modules_count, "modules.count")                                                                                  \
    T(modules_first, "modules.first")                                                                                  \
    T(module_bytes, "module.bytes")                                                                                    \
    T(module_start, "module.start")                                                                                    \
    T(module_end, "module.end")                                                                                        \
    T(module_bias, "module.bias")                                                                                      \
    T(module_path, "module.path")                                                                                      \
    T(module_gone, "module.gone")                                                                                      \
    T(module_id_bytes, "module.id_bytes")                                                                              \
    T(module_id, "module.id")                                                                                          \
    O(emergency_start, "emergency.start")                                                                              \
    O(emergency_used, "emergency.used")                                                                                \
    O(emergency_bytes, "emergency.bytes")                                                                              \
    O(emergency_grain, "emergency.grain")                                                                              \
    O(emergency_head, "emergency.head")                                                                                \
    O(emergency_first_bits, "emergency.first_bits")                                                                    \
    O(emergency_classes, "emergency.classes")                                                                          \
    O(emergency_size, "emergency.size")                                                                                \
    O(emergency_class, "emergency.class")                                                                              \
    O(emergency_state, "emergency.state")                                                                              \
    O(emergency_live, "emergency.live")                                                                                \
    O(emergency_offset, "emergency.offset")                                                                            \
    T(options, "options")                                                                                              \
    T(options_room, "options.room")                                                                                    \
    T(header_layout, "header.layout")                                                                                  \
    T(header_flag, "header.flag")                                                                                      \
    T(header_mark, "header.mark")                                                                                      \
    T(header_long, "header.long")                                                                                      \
    T(header_long_block, "header.long_block")                                                                          \
    T(header_key, "header.key")                                                                                        \
    T(domains_chunks, "domains.chunks")                                                                                \
    T(domains_count, "domains.count")                                                                                  \
    T(domains_chunk, "domains.chunk")                                                                                  \
    T(domain_bytes, "domain.bytes")                                                                                    \
    T(domain_number, "domain.number")                                                                                  \
    T(domain_flags, "domain.flags")                                                                                    \
    T(domain_destroyed, "domain.destroyed")                                                                            \
    T(domain_heap, "domain.heap")                                                                                      \
    T(domain_name, "domain.name")                                                                                      \
    T(domain_current, "domain.current")                                                                                \
    T(domain_peak, "domain.peak")                                                                                      \
    T(domain_soft, "domain.soft")                                                                                      \
    T(domain_hard, "domain.hard")                                                                                      \
    T(domain_in_blocks, "domain.in_blocks")                                                                            \
    T(domain_in_bytes, "domain.in_bytes")                                                                              \
    T(domain_out_blocks, "domain.out_blocks")                                                                          \
    T(domain_out_bytes, "domain.out_bytes")                                                                            \
    T(slots, "slots")                                                                                                  \
    T(slot_bytes, "slot.bytes")                                                                                        \
    T(slot_in_blocks, "slot.in_blocks")                                                                                \
    T(slot_in_bytes, "slot.in_bytes")                                                                                  \
    T(slot_out_blocks, "slot.out_blocks")                                                                              \
    T(slot_out_bytes, "slot.out_bytes")                                                                                \
    T(slot_cold, "slot.cold")                                                                                          \
    T(colds, "colds")                                                                                                  \
    T(colds_count, "colds.count")                                                                                      \
    T(cold_bytes, "cold.bytes")                                                                                        \
    T(cold_high, "cold.high")                                                                                          \
    T(cold_index, "cold.index")

struct ta__layout {
    uint32_t version;
    int can_trace; /* the library has tables of stacks and headers */
    char library[24];
    const struct ta__object_file *object; /* that the note is in */
#define MEMBER(member, name) uint64_t member;
    TA__LAYOUT(MEMBER, MEMBER, MEMBER)
#undef MEMBER
};

/* 0; or -1 with the error set: the process has no tracealloc, or one that this reader does not know. */
TA_NODISCARD int ta__layout_read(struct ta__layout *layout, struct ta__target *target);

#endif
