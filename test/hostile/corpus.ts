import type { Attack } from "./attack.ts";
import * as bodies from "./attacks/bodies.ts";
import * as facts from "./attacks/forged-facts.ts";
import * as files from "./attacks/forged-files.ts";

/** Files that say what is not so. */
export const importAttacks: readonly Attack[] = [...Object.values(facts), ...Object.values(files)].flat();

/** Requests whose JSON is not what a route takes. */
export const bodyAttacks: readonly Attack[] = Object.values(bodies).flat();
