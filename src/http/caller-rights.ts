/** What a caller may do with their sessions beside reading and writing them. */
export interface CallerRights {
  /** Answer the questions of runs, so that a call takes place. */
  readonly approve: boolean;
  /** Make a model or a tool work: start and go on with runs, steer and stop them, have summaries written. */
  readonly run: boolean;
  /** Reach the files that checkpoints hold: hold them, compare them, bring them back, remove them. */
  readonly files: boolean;
}
