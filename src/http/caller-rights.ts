/** The rights of a caller beside reading and writing sessions. */
export interface CallerRights {
  /** Answer the questions of runs, which lets calls run. */
  readonly approve: boolean;
  /** Use models and tools: start, recover, steer and cancel runs, and write summaries. */
  readonly run: boolean;
  /** Use the files in checkpoints: store, compare, restore and delete them. */
  readonly files: boolean;
}
