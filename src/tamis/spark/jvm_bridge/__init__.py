"""Between Python and the JVM: Py4J, Janino, the Java sources, Catalyst trees, types and errors."""
