/* A library that calls the libcudart it was linked with, which returns its version. Built once for each of
 * several runtimes; runtime_versions.c loads them all. */
int cudaRuntimeGetVersion(int *version);

int client_version(void);

int client_version(void)
{
    int version = 0;
    return cudaRuntimeGetVersion(&version) == 0 ? version : -1;
}
