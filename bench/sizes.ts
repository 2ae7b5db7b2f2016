/** How much each section does. */
export interface Sizes {
  /** How often the contenders alternate. */
  readonly rounds: number;
  /** Rounds before the first one that counts. */
  readonly warmups: number;
  /** Appends of one round, where nothing waits for the disk. */
  readonly appends: number;
  /** Appends of one round, where each waits for the disk. */
  readonly appendsSynced: number;
  /** Appends of one round at either length of the session. */
  readonly growthAppends: number;
  /** How many variables a session comes to, at few and at many. */
  readonly variablesFew: number;
  readonly variablesMany: number;
  readonly entriesSmall: number;
  /** The session that opening a large one is compared with. */
  readonly entriesMedium: number;
  readonly entriesLarge: number;
  /** What a compaction keeps. */
  readonly entriesKept: number;
  readonly opens: number;
  /** Forks, or moves of the leaf, of one round. */
  readonly forks: number;
  /** Forks, or moves of the leaf, over which the bytes are averaged. */
  readonly forksForBytes: number;
  readonly sessions: number;
  readonly lists: number;
  /** Child processes for each point of the memory section. */
  readonly children: number;
  readonly trees: number;
  readonly turnsSmall: number;
  readonly turnsLarge: number;
  readonly turnRounds: number;
  /** The round of a run that an early one is compared with. */
  readonly roundsLate: number;
  /** Rows that a run starts with, where it starts with many. */
  readonly rowsInherited: number;
  readonly runsAtOnce: number;
  /** Turns from one checkpoint to the next. */
  readonly checkpointEvery: number;
  /** Checkpoints, or restores, of one round. */
  readonly checkpoints: number;
  /** Sessions that are appended to at once. */
  readonly sessionsAtOnce: number;
  /** Appends to each of them in one round. */
  readonly appendsAtOnce: number;
  /** Sessions of the listing that is compared with one of `sessions`. */
  readonly sessionsMany: number;
  readonly sessionsOfUser: number;
  /** The turns at which a conversation on a server is measured, in rising order. */
  readonly turnsOnServer: readonly number[];
  /** Requests of one round. */
  readonly requests: number;
  /** Event streams that are open at once. */
  readonly streams: number;
  /** How often a page of the studio is opened. */
  readonly pages: number;
  /** How often a wheel is turned over it. */
  readonly scrolls: number;
  /** How often each operation is the first thing of a new process. */
  readonly coldRounds: number;
  /** Messages that such a process appends, reads or forks. */
  readonly coldMessages: number;
  /** Runs that a fleet is asked for at once. */
  readonly fleetRuns: number;
  /** Notifications whose way is measured. */
  readonly queueRounds: number;
  /** Sessions of another program that are imported, and how large each is. */
  readonly foreignFiles: number;
  readonly foreignFileBytes: number;
  /** Sessions and notifications over which their bytes are averaged. */
  readonly scaleItems: number;
}

/** What the published numbers are measured with. */
export const FULL_SIZES: Sizes = {
  rounds: 31,
  warmups: 5,
  appends: 300,
  appendsSynced: 25,
  growthAppends: 200,
  variablesFew: 100,
  variablesMany: 10_000,
  entriesSmall: 100,
  entriesMedium: 1000,
  entriesLarge: 100_000,
  entriesKept: 100,
  opens: 21,
  forks: 20,
  forksForBytes: 200,
  sessions: 1000,
  lists: 15,
  children: 3,
  trees: 5,
  turnsSmall: 100,
  turnsLarge: 10_000,
  turnRounds: 7,
  roundsLate: 3000,
  rowsInherited: 20_000,
  runsAtOnce: 1000,
  checkpointEvery: 10,
  checkpoints: 20,
  sessionsAtOnce: 64,
  appendsAtOnce: 20,
  sessionsMany: 100_000,
  sessionsOfUser: 100,
  turnsOnServer: [100, 1000, 10_000],
  requests: 2000,
  streams: 1000,
  pages: 9,
  scrolls: 120,
  coldRounds: 11,
  coldMessages: 2000,
  fleetRuns: 2000,
  queueRounds: 201,
  foreignFiles: 1000,
  foreignFileBytes: 1_000_000,
  scaleItems: 250,
};

/** Enough to run every line once. */
export const QUICK_SIZES: Sizes = {
  rounds: 2,
  warmups: 1,
  appends: 5,
  appendsSynced: 5,
  growthAppends: 5,
  variablesFew: 10,
  variablesMany: 100,
  entriesSmall: 20,
  entriesMedium: 100,
  entriesLarge: 500,
  entriesKept: 10,
  opens: 2,
  forks: 2,
  forksForBytes: 10,
  sessions: 20,
  lists: 2,
  children: 1,
  trees: 1,
  turnsSmall: 10,
  turnsLarge: 50,
  turnRounds: 2,
  roundsLate: 100,
  rowsInherited: 200,
  runsAtOnce: 20,
  checkpointEvery: 10,
  checkpoints: 2,
  sessionsAtOnce: 8,
  appendsAtOnce: 3,
  sessionsMany: 100,
  sessionsOfUser: 10,
  turnsOnServer: [2, 4, 8],
  requests: 40,
  streams: 20,
  pages: 1,
  scrolls: 4,
  coldRounds: 1,
  coldMessages: 20,
  fleetRuns: 20,
  queueRounds: 5,
  foreignFiles: 5,
  foreignFileBytes: 20_000,
  scaleItems: 20,
};
