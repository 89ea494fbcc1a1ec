import type { Reader } from "./transcript.ts";
export declare function fileReader(path: string): Reader;
