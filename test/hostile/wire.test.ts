import { wireAttacks } from "./corpus.ts";
import { testAttacks } from "./test-attacks.ts";

testAttacks(wireAttacks);
