export { SkeinSessionStore } from "./skein-session-store.ts";
export type { TranscriptKey, TranscriptLine } from "./transcript-line.ts";
