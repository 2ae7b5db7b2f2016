import { bodyAttacks } from "./corpus.ts";
import { testAttacks } from "./test-attacks.ts";

testAttacks(bodyAttacks);
