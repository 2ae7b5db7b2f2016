export type { FileOptions, TreeOptions } from "./file-options.ts";
export { defaultSessionDirectory, skeinHome } from "./home.ts";
export { listSessions } from "./list-sessions.ts";
export { SessionTree } from "./session-tree.ts";
