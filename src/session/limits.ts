/** The most bytes one entry may take as JSON. */
export const ENTRY_BYTES_MAX: number = 8 * 1024 * 1024;

/** The most entries one append may carry; a create or a verbatim copy may carry any number. */
export const APPEND_ENTRIES_MAX = 10_000;

/** The most bytes that the metadata of a checkpoint takes as JSON: the checkpoints of a session are read together. */
export const CHECKPOINT_METADATA_BYTES_MAX: number = 16 * 1024;

/** The most characters of entries that a context is made of, several times what any model takes. */
export const CONTEXT_CHARACTERS_MAX: number = 32 * 1024 * 1024;

/** The most characters of an entry id, a user id, a run id or a checkpoint id. */
export const ID_CHARACTERS_MAX = 512;

/** The most characters of a working directory's path. */
export const CWD_CHARACTERS_MAX = 4096;

/** The most bytes of a header as JSON, its metadata included. */
export const HEADER_BYTES_MAX: number = 256 * 1024;

/** The most that one new entry may say it cost. */
export const COST_MAX = 1_000_000_000;

/** The most characters of a new label or name. */
export const NAME_CHARACTERS_MAX = 1000;

/** The most characters of the reason of a new status. */
export const REASON_CHARACTERS_MAX = 10_000;

/** The most characters of a provider, a model or a thinking level in a new entry: every later entry is stored with them. */
export const MODEL_CHARACTERS_MAX = 512;

/** The most tokens that one new entry may say it used, of each kind. */
export const TOKENS_MAX = 1_000_000_000_000;

/** How many characters of the first user message a listing shows. */
export const FIRST_MESSAGE_CHARACTERS_MAX = 200;

/** How many items one page of a listing may hold. */
export const PAGE_ITEMS_MAX = 1000;

/** How many runs without an end a session may have; one more is refused, and none is ever forgotten. */
export const OPEN_RUNS_MAX = 32;
