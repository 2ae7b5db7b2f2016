/** The most bytes of one entry as JSON. */
export const ENTRY_BYTES_MAX: number = 8 * 1024 * 1024;

/** The most entries of one append; a create or a verbatim copy may have any number. */
export const APPEND_ENTRIES_MAX = 10_000;

/** The most bytes of a checkpoint's metadata as JSON: all checkpoints of a session are read together. */
export const CHECKPOINT_METADATA_BYTES_MAX: number = 16 * 1024;

/** The most characters of the entries of one context; several times what any model accepts. */
export const CONTEXT_CHARACTERS_MAX: number = 32 * 1024 * 1024;

/** The most characters of an entry id, a user id, a run id or a checkpoint id. */
export const ID_CHARACTERS_MAX = 512;

/** The most characters of a working directory's path. */
export const CWD_CHARACTERS_MAX = 4096;

/** The most bytes of a header as JSON, its metadata included. */
export const HEADER_BYTES_MAX: number = 256 * 1024;

/** The highest cost that one new entry may record. */
export const COST_MAX = 1_000_000_000;

/** The most characters of a new label or name. */
export const NAME_CHARACTERS_MAX = 1000;

/** The most characters of the reason of a new status. */
export const REASON_CHARACTERS_MAX = 10_000;

/**
 * The most characters of a provider, a model or a thinking level in a new entry: every later entry is stored with a
 * copy of them.
 */
export const MODEL_CHARACTERS_MAX = 512;

/** The most tokens of each kind that one new entry may record. */
export const TOKENS_MAX = 1_000_000_000_000;

/** How many characters of the first user message a listing shows. */
export const FIRST_MESSAGE_CHARACTERS_MAX = 200;

/** The most items in one page of a listing. */
export const PAGE_ITEMS_MAX = 1000;

/** The most open runs of a session; a further one is refused, so that no run is ever dropped. */
export const OPEN_RUNS_MAX = 32;
