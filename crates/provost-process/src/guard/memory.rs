//! A guard without its caller's memory, which may hold secrets that the guarded program could read.
//!
//! A guard is a fork, so it begins with a copy of everything that its caller has in memory. Before the program is
//! executed, the guard moves to a stack of its own and unmaps all other memory but program and libraries, whose
//! variables hold addresses and settings, and this thread's block of C library variables (`errno`).

use libc::c_void;

/// Objects (program, libraries) beyond this number are unmapped.
const OBJECTS_MAX: usize = 128;
/// Ranges beside the objects: the stack and the thread's block.
const RANGES_MAX: usize = OBJECTS_MAX + 2;
const STACK_BYTES: usize = 64 * 1024;
/// What is kept on each side of the thread pointer at least: the C library's own record of the thread, which the
/// kernel writes to (rseq).
const THREAD_BYTES_MIN: usize = 0xb00;

/// Addresses from `start`, below `end`.
#[derive(Clone, Copy, Default)]
struct Range {
    start: usize,
    end: usize,
}

/// What a guard needs of its caller's memory.
#[derive(Clone, Copy)]
pub(super) struct Needed {
    objects: [Range; OBJECTS_MAX],
    object_count: usize,
    page: usize,
    /// Bytes of thread-local variables of all objects.
    locals_bytes: usize,
    /// The end of this thread's stack, which the thread's block is part of; of the first thread the largest address.
    stack_end: usize,
}

impl Needed {
    /// Looks it up for guards that this thread forks. It takes locks, so only the caller of a fork may.
    pub(super) fn by_this_thread() -> Self {
        let mut needed = Self {
            objects: [Range::default(); OBJECTS_MAX],
            object_count: 0,
            page: 4096,
            locals_bytes: 0,
            stack_end: 0,
        };
        // SAFETY: no memory is involved.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        needed.page = usize::try_from(page).unwrap_or(4096);
        needed.stack_end = stack_end();
        // SAFETY: `add_object` gets a pointer to `needed`, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(add_object), (&raw mut needed).cast()) };
        needed
    }

    fn floor(&self, address: usize) -> usize {
        address & !self.page.wrapping_sub(1)
    }

    fn ceil(&self, address: usize) -> usize {
        self.floor(address.saturating_add(self.page.wrapping_sub(1)))
    }

    /// The block of the thread that executes this, without what the stack holds below it.
    fn thread_block(&self) -> Range {
        let pointer = thread_pointer();
        let around = self.locals_bytes.max(THREAD_BYTES_MIN);
        let start = pointer.saturating_sub(around);
        Range { start, end: self.ceil(pointer.saturating_add(around)).min(self.stack_end) }
    }
}

/// The end of this thread's stack; of the first thread, whose block is elsewhere, the largest address.
fn stack_end() -> usize {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut start = std::ptr::null_mut::<c_void>();
    let mut bytes = 0;
    // SAFETY: no memory is involved.
    if unsafe { libc::getpid() == libc::gettid() } {
        return usize::MAX;
    }
    // SAFETY: the attributes are initialised by the first call before the others use them, and destroyed once.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return usize::MAX;
        }
        libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
    let end = start.addr().saturating_add(bytes);
    let pointer = thread_pointer();
    // A thread whose block isn't on its stack: all that is known is the pointer.
    if (start.addr()..end).contains(&pointer) { end } else { usize::MAX }
}

unsafe extern "C" fn add_object(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    needed: *mut c_void,
) -> libc::c_int {
    // SAFETY: both pointers are valid during the call, and the headers come with their number.
    let (info, needed, headers) = unsafe {
        let info = &*info;
        (
            info,
            &mut *needed.cast::<Needed>(),
            std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
        )
    };
    let mut object = Range { start: usize::MAX, end: 0 };
    for header in headers {
        let number = |value| usize::try_from(value).unwrap_or_default();
        let start = number(info.dlpi_addr).wrapping_add(number(header.p_vaddr));
        if header.p_type == libc::PT_LOAD {
            object.start = object.start.min(needed.floor(start));
            object.end = object.end.max(needed.ceil(start.saturating_add(number(header.p_memsz))));
        } else if header.p_type == libc::PT_TLS {
            let bytes = number(header.p_memsz).saturating_add(number(header.p_align));
            needed.locals_bytes = needed.locals_bytes.saturating_add(bytes);
        }
    }
    if let Some(slot) = needed.objects.get_mut(needed.object_count).filter(|_| object.end > 0) {
        *slot = object;
        needed.object_count = needed.object_count.saturating_add(1);
    }
    0
}

/// What begins on the new stack.
struct Begin<T> {
    needed: Needed,
    stack: Range,
    go_on: fn(T) -> !,
    with: T,
}

/// Continues with `go_on(with)` on a new stack, in a process that has forgotten all else. Ends the process if there
/// is no memory for a stack.
///
/// # Safety
/// This is the only thread of the process, and `with` refers to no memory.
pub(super) unsafe fn forget_all<T: Copy>(needed: &Needed, with: T, go_on: fn(T) -> !) -> ! {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // A page may be as large as the stack.
    let bytes = STACK_BYTES.saturating_add(needed.ceil(size_of::<Begin<T>>()));
    // SAFETY: a new mapping touches no other.
    let low = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if low == libc::MAP_FAILED {
        super::sys::exit();
    }
    let stack = Range { start: low.addr(), end: low.addr().saturating_add(bytes) };
    // The head of the new mapping, aligned to a page; the stack grows down from there.
    // SAFETY: the mapping has room for it above the stack.
    unsafe {
        let begin = low.byte_add(STACK_BYTES).cast::<Begin<T>>();
        begin.write(Begin { needed: *needed, stack, go_on, with });
        continue_at(begin.cast(), begin_anew::<T>)
    }
}

/// Calls `entry(stack)` with the stack that ends at `stack`.
///
/// # Safety
/// `stack` is aligned to 16 bytes and has room below it.
unsafe fn continue_at(stack: *mut c_void, entry: unsafe extern "C" fn(*mut c_void) -> !) -> ! {
    // SAFETY: the caller's promise. Nothing of the old stack is used again.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!(
            "mov rsp, rdi", "xor ebp, ebp", "call {entry}", "ud2",
            in("rdi") stack, entry = in(reg) entry, options(noreturn)
        );
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!(
            "mov sp, x0", "mov x29, xzr", "blr {entry}", "brk #1",
            in("x0") stack, entry = in(reg) entry, options(noreturn)
        );
    }
}

unsafe extern "C" fn begin_anew<T: Copy>(begin: *mut c_void) -> ! {
    // SAFETY: `forget_all` has written it, to the mapping that is kept.
    let begin = unsafe { &*begin.cast::<Begin<T>>() };
    let needed = &begin.needed;
    let block = needed.thread_block();
    let mut kept = [Range::default(); RANGES_MAX];
    for (slot, object) in kept.iter_mut().zip(needed.objects.iter().take(needed.object_count)) {
        *slot = *object;
    }
    let [.., one, other] = &mut kept;
    *one = begin.stack;
    *other = Range { start: needed.floor(block.start), end: block.end };
    kept.sort_unstable_by_key(|range| range.start);
    let mut end = 0;
    for range in kept {
        unmap(Range { start: end, end: range.start });
        end = end.max(range.end);
    }
    unmap_from(end, needed.page);
    if needed.stack_end != usize::MAX {
        // What the old stack holds in the page of the block.
        let old = needed.floor(block.start);
        // SAFETY: that page is kept, and nothing below the block is used again.
        unsafe {
            std::ptr::with_exposed_provenance_mut::<u8>(old).write_bytes(0, block.start.saturating_sub(old))
        };
    }
    (begin.go_on)(begin.with)
}

fn unmap(range: Range) -> bool {
    let Some(bytes) = range.end.checked_sub(range.start).filter(|bytes| *bytes > 0) else { return true };
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(range.start);
    // SAFETY: nothing in the range is used again: all that this process still uses is in other ranges.
    unsafe { libc::munmap(start, bytes) == 0 }
}

/// Unmaps all from `start` on. The kernel refuses ends beyond the largest address, which differs.
fn unmap_from(start: usize, page: usize) {
    let ends = (36..=56).rev().map(|bits| 1_usize << bits);
    for end in ends.flat_map(|end| [end, end.saturating_sub(page)]) {
        if unmap(Range { start, end }) {
            return;
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first word of the thread's block is its own address.
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}

#[cfg(target_arch = "aarch64")]
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: no memory is involved.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags))
    };
    pointer
}
