// The client's route table, as the OpenAPI document has it.
export {};
