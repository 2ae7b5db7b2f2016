import { testStores } from "./store-suite.ts";

testStores(["redis"]);
