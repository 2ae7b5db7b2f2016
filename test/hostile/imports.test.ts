import { importAttacks } from "./corpus.ts";
import { testAttacks } from "./test-attacks.ts";

testAttacks(importAttacks);
