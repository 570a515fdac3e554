import { openMemory } from "./memory.harness.js";
import { storeSuite } from "./store.suite.js";

storeSuite("memory store", openMemory);
