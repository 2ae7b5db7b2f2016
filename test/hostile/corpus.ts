import type { Attack } from "./attack.ts";
import * as access from "./attacks/access.ts";
import * as bodies from "./attacks/bodies.ts";
import * as floods from "./attacks/floods.ts";
import * as facts from "./attacks/forged-facts.ts";
import * as files from "./attacks/forged-files.ts";
import * as identity from "./attacks/identity.ts";
import * as transfers from "./attacks/transfers.ts";
import * as wire from "./attacks/wire.ts";
import * as words from "./attacks/words.ts";

/** Files with false claims. */
export const importAttacks: readonly Attack[] = [...Object.values(facts), ...Object.values(files)].flat();

/** Requests whose JSON is not what a route takes. */
export const bodyAttacks: readonly Attack[] = Object.values(bodies).flat();

/** Bytes that no client would send. */
export const wireAttacks: readonly Attack[] = [...Object.values(transfers), ...Object.values(wire)].flat();

/** Requests by callers without permission. */
export const accessAttacks: readonly Attack[] = [...Object.values(identity), ...Object.values(access)].flat();

/** More of something than one user should have. */
export const floodAttacks: readonly Attack[] = Object.values(floods).flat();

/** Words that are taken for more than words somewhere. */
export const wordAttacks: readonly Attack[] = Object.values(words).flat();

/** All attacks, by the test that makes them. */
export const corpus: Readonly<Record<string, readonly Attack[]>> = {
  "test/hostile/imports.test.ts": importAttacks,
  "test/hostile/bodies.test.ts": bodyAttacks,
  "test/hostile/wire.test.ts": wireAttacks,
  "test/hostile/access.test.ts": accessAttacks,
  "test/hostile/floods.test.ts": floodAttacks,
  "test/hostile/words.test.ts": wordAttacks,
};
