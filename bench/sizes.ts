/** The amounts of work of the sections. */
export interface Sizes {
  /** The number of rounds. */
  readonly rounds: number;
  /** The number of warm-up rounds before them. */
  readonly warmups: number;
  /** Appends in a round, if none waits for the disk. */
  readonly appends: number;
  /** Appends in a round, if each waits for the disk. */
  readonly appendsSynced: number;
  /** Appends in a round at each length of the session. */
  readonly growthAppends: number;
  /** The number of variables in a session, few and many. */
  readonly variablesFew: number;
  readonly variablesMany: number;
  readonly entriesSmall: number;
  /** The session that a large one is compared with. */
  readonly entriesMedium: number;
  readonly entriesLarge: number;
  /** The number of entries that a compaction keeps. */
  readonly entriesKept: number;
  readonly opens: number;
  /** Forks, or moves of the leaf, in a round. */
  readonly forks: number;
  /** Forks, or moves of the leaf, whose bytes are averaged. */
  readonly forksForBytes: number;
  readonly sessions: number;
  /** The number of sessions that a search looks through. */
  readonly sessionsSearched: number;
  readonly lists: number;
  /** Child processes for each value of the memory section. */
  readonly children: number;
  readonly trees: number;
  readonly turnsSmall: number;
  readonly turnsLarge: number;
  readonly turnRounds: number;
  /** The late round of a run that an early one is compared with. */
  readonly roundsLate: number;
  /** The number of inherited rows of a long run. */
  readonly rowsInherited: number;
  readonly runsAtOnce: number;
  /** Turns from one checkpoint to the next. */
  readonly checkpointEvery: number;
  /** Checkpoints, or restores, in a round. */
  readonly checkpoints: number;
  /** Sessions that are appended to in parallel. */
  readonly sessionsAtOnce: number;
  /** Appends to each of them in a round. */
  readonly appendsAtOnce: number;
  /** Sessions in the long listing, which is compared with one of `sessions`. */
  readonly sessionsMany: number;
  readonly sessionsOfUser: number;
  /** The lengths at which a conversation on a server is measured, in ascending order. */
  readonly turnsOnServer: readonly number[];
  /** Requests in a round. */
  readonly requests: number;
  /** Event streams that are open at the same time. */
  readonly streams: number;
  /** How often a page of the studio is opened. */
  readonly pages: number;
  /** How often it is scrolled. */
  readonly scrolls: number;
  /** How often each operation is the first action of a new process. */
  readonly coldRounds: number;
  /** The number of session files of another program that `skein` without a command counts. */
  readonly foreignSessions: number;
  /** Messages that such a process appends, reads or forks. */
  readonly coldMessages: number;
  /** The number of runs that a fleet gets at the same time. */
  readonly fleetRuns: number;
  /** Notifications whose latency is measured. */
  readonly queueRounds: number;
  /** Sessions of another program to import, and the size of each. */
  readonly foreignFiles: number;
  readonly foreignFileBytes: number;
  /** The pictures of a session of Codex, and its size. */
  readonly pictures: number;
  readonly rolloutBytes: number;
  /** The size of a file that is uploaded to a server, and downloaded. */
  readonly transferBytes: number;
  /** How many processes take ten turns each in the session whose requests are counted. */
  readonly cacheProcesses: number;
  /** Edits in the large context. */
  readonly cacheEdits: number;
  /** Sessions and notifications whose sizes are averaged. */
  readonly scaleItems: number;
}

/** The sizes of the published numbers. */
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
  sessionsSearched: 10_000,
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
  foreignSessions: 10_000,
  coldMessages: 2000,
  fleetRuns: 2000,
  queueRounds: 201,
  foreignFiles: 1000,
  foreignFileBytes: 1_000_000,
  pictures: 500,
  rolloutBytes: 1_000_000_000,
  transferBytes: 100_000_000,
  cacheProcesses: 20,
  cacheEdits: 1000,
  scaleItems: 250,
};

/** Enough to execute every line once. */
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
  sessionsSearched: 100,
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
  foreignSessions: 20,
  coldMessages: 20,
  fleetRuns: 20,
  queueRounds: 5,
  foreignFiles: 5,
  foreignFileBytes: 20_000,
  pictures: 5,
  rolloutBytes: 2_000_000,
  transferBytes: 5_000_000,
  cacheProcesses: 2,
  cacheEdits: 10,
  scaleItems: 20,
};
