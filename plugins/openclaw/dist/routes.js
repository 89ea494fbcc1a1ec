// The route table of the client: what the OpenAPI document has, and the fixed
// names of calls that the document does not describe (yet).
export {};
