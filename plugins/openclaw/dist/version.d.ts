/** The plugin's version; a test holds it against package.json. */
export declare const version = "0.1.0";
