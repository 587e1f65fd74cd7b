/* A library that calls the libcudart it was linked with, to return that libcudart's version. The library is
 * built once for each of several runtimes, and runtime_versions.c loads all of these builds. */
int cudaRuntimeGetVersion(int *version);

int client_version(void);

int client_version(void)
{
    int version = 0;
    return cudaRuntimeGetVersion(&version) == 0 ? version : -1;
}
