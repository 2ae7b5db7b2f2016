import type { Attack } from "./attack.ts";
import * as access from "./attacks/access.ts";
import * as bodies from "./attacks/bodies.ts";
import * as facts from "./attacks/forged-facts.ts";
import * as files from "./attacks/forged-files.ts";
import * as wire from "./attacks/wire.ts";

/** Files that say what is not so. */
export const importAttacks: readonly Attack[] = [...Object.values(facts), ...Object.values(files)].flat();

/** Requests whose JSON is not what a route takes. */
export const bodyAttacks: readonly Attack[] = Object.values(bodies).flat();

/** Bytes that no client would send. */
export const wireAttacks: readonly Attack[] = Object.values(wire).flat();

/** Requests by those who may not make them. */
export const accessAttacks: readonly Attack[] = Object.values(access).flat();
