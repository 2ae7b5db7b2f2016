import { accessAttacks } from "./corpus.ts";
import { testAttacks } from "./test-attacks.ts";

testAttacks(accessAttacks);
